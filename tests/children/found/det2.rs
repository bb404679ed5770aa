use std::sync::atomic::*; use std::sync::*; use std::time::*; use std::thread;
use work_permit::*;
fn ms(n:u64)->Duration{Duration::from_millis(n)}
fn main(){
 let w:&'static str=Box::leak(std::env::args().nth(1).unwrap().into_boxed_str());
 thread::spawn(move||{thread::sleep(Duration::from_secs(20));println!("{w} WATCHDOG");std::process::exit(3)});
 let pool=Pool::builder().max_threads(2).build().unwrap();
 match w {
 // leases at root: threads run root inline while a child has queued work; no lost wake-up
 "lease"=>{ for round in 0..300 { let p=pool.executor("p").limit(1+round%2).build().unwrap(); let c=p.child("c").limit(1).build().unwrap(); let n=Arc::new(AtomicUsize::new(0));
   thread::scope(|s|{ s.spawn(||for _ in 0..200{p.run(||()).unwrap();}); let n2=n.clone(); let c2=c.clone(); s.spawn(move||for _ in 0..100{let n=n2.clone(); c2.execute(move||{n.fetch_add(1,Ordering::SeqCst);}).unwrap();}); });
   p.try_run(||()).ok(); let t=Instant::now(); while n.load(Ordering::SeqCst)<100{ if t.elapsed()>ms(3000){println!("LOST round {round}: {} {:?} {:?}",n.load(Ordering::SeqCst),p.stats(),c.stats());return} thread::yield_now();} } println!("lease ok"); }
 // speed: a nested waiter with limit 0 and back
 "nested0"=>{ for i in 0..500u64 { let p=pool.executor("p").limit(2).build().unwrap(); let m=p.child("m").limit(1).build().unwrap(); let c=m.strand("c").build().unwrap(); m.set_limit(0).unwrap(); c.set_limit(0).unwrap();
   let h=c.spawn(||1).unwrap(); let c2=c.clone(); let p2=p.clone(); let m2=m.clone();
   let t=thread::spawn(move||{p2.run(||{ if i%3==0 {c2.run(||2).unwrap()} else if i%3==1 {m2.run(||2).unwrap()} else {c2.run_timeout(Duration::from_micros(i%60),||2).unwrap_or(2)} }).unwrap()});
   if i%2==0 {thread::sleep(Duration::from_micros(i%97));} c.set_limit(1).unwrap(); m.set_limit(1).unwrap(); if i%5==0{m.set_limit(0).unwrap(); m.set_limit(Executor::MAX_LIMIT).unwrap();} if i%7==0{p.set_limit(0).unwrap();p.set_limit(Executor::MAX_LIMIT).unwrap();}
   assert_eq!(t.join().unwrap(),2); 
   let tt=Instant::now(); while !h.is_finished(){ if tt.elapsed()>ms(3000){println!("LOST {i} p {:?} m {:?} c {:?}",p,m,c);return} thread::yield_now(); } assert_eq!(h.join().unwrap(),1); p.drain(ms(3000)).unwrap(); } println!("nested0 ok"); }
 // last handles dropped inside tasks, on workers
 "lastdrop"=>{ for i in 0..1000 { let p=pool.executor("p").limit(1+i%2).build().unwrap(); let m=p.child("m").limit(1).build().unwrap(); let c=m.strand("c").build().unwrap();
   let n=Arc::new(AtomicUsize::new(0)); let mk=|e:Executor|{let n=n.clone();move||{n.fetch_add(1,Ordering::SeqCst);drop(e)}};
   c.execute(mk(m.clone())).unwrap(); c.execute(mk(c.clone())).unwrap(); c.execute(mk(p.clone())).unwrap(); m.execute(mk(c.clone())).unwrap(); p.execute(mk(c.clone())).unwrap(); let h=c.spawn(mk(p.clone())).unwrap();
   if i%3==0 { let c3=c.clone(); let f=mk(m.clone()); c.try_run(move||{f();drop(c3)}).ok(); n.store(n.load(Ordering::SeqCst),Ordering::SeqCst); } let extra=n.clone(); let _=extra;
   match i%3{0=>{drop(p);drop(m);drop(c)}1=>{drop(c);drop(m);drop(p)}_=>{drop(m);drop(c);drop(p)}} h.join().unwrap(); let t=Instant::now(); while Arc::strong_count(&n)>2 { if t.elapsed()>ms(3000){println!("LOST lastdrop {i} {}",Arc::strong_count(&n));return} thread::yield_now();} } println!("lastdrop ok"); }
 // race: worker starts the task between is_queued and the place; limit 0 meanwhile
 "join_race"=>{ let (mut stuck,mut tot)=(0,0); let t0=Instant::now(); while t0.elapsed()<Duration::from_secs(12)&&stuck<3 { tot+=1; let p=pool.executor("p").limit(2).build().unwrap(); let c=p.child("c").limit(1).build().unwrap();
   let g=c.acquire().unwrap(); let h=c.spawn(||{let t=Instant::now(); while t.elapsed()<Duration::from_micros(60){}}).unwrap(); let (p2,c2)=(p.clone(),c.clone()); let (tx,rx)=mpsc::channel(); let go=Arc::new(Barrier::new(2)); let go2=go.clone();
   let fin=Arc::new(AtomicBool::new(false)); let f2=fin.clone();
   let t=thread::spawn(move||{p2.run(||{go2.wait(); let _=h.join(); f2.store(true,Ordering::SeqCst); tx.send(()).unwrap()}).unwrap()});
   go.wait(); drop(g); thread::yield_now(); while c2.stats().queued>0{ } c2.set_limit(0).unwrap();
   if rx.recv_timeout(ms(300)).is_err(){ let s=c2.stats(); stuck+=1; println!("join blocked: completed {} queued {} waiting {}",s.completed,s.queued,s.waiting); c2.set_limit(1).unwrap(); } t.join().unwrap(); } println!("join_race stuck {stuck} of {tot}"); }
 // async: future of child's task; unfit with levels; scope
 "unfit_more"=>{ let p=pool.executor("p").limit(1).build().unwrap(); let m=p.child("m").limit(1).build().unwrap(); let c=m.child("c").limit(1).build().unwrap(); let s=m.child("s").limit(1).build().unwrap();
   const OP:Operations=Operations::only(0).unwrap();
   let q=pool.executor("q").limit(1).requires(OP).build().unwrap(); let d=q.child("d").build().unwrap(); let _a=fitness::allow(OP);
   q.run(||{ let _u=fitness::allow(Operations::NONE); let h=d.spawn(||1).unwrap(); println!("requires: {}",h.join_timeout(ms(700)).map(|r|format!("{r:?}")).unwrap_or("timed out".into())); let h=q.spawn(||1).unwrap(); println!("own requires: {}",h.join_timeout(ms(700)).map(|r|format!("{r:?}")).unwrap_or("timed out".into())); }).unwrap();
   c.run(||{ let _g=fitness::no_inline(); let h=s.spawn(||1).unwrap(); println!("sibling: {}",h.join_timeout(ms(700)).map(|r|format!("{r:?}")).unwrap_or("timed out".into())); }).unwrap();
   // scope in parent's task, unfit thread
   p.run(||{ let _g=fitness::no_inline(); let t=Instant::now(); let p2=pool.clone(); let _=p2; c.scope(|sc|{ let h=sc.spawn(||1).map_err(|r|r.into_reason()).unwrap(); match h.join_timeout(ms(700)){Err(h)=>{println!("scope join timed out, cancel {}",h.cancel())},Ok(r)=>println!("scope {r:?}")} }); println!("scope over {:?}",t.elapsed()); }).unwrap(); }
 "unfit_scope"=>{ let p=pool.executor("p").limit(1).build().unwrap(); let c=p.child("c").limit(1).build().unwrap();

   p.run(||{ let _g=fitness::no_inline(); c.scope(|sc|{ sc.spawn(||println!("ran")).map(|_|()).map_err(|r|r.into_reason()).unwrap(); }); println!("scope done"); }).unwrap(); }
 _=>{} }
}
