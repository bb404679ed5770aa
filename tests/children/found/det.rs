use std::sync::atomic::*; use std::sync::*; use std::time::*; use std::thread;
use work_permit::*;
static AT: AtomicUsize = AtomicUsize::new(0);
fn ms(n:u64)->Duration{Duration::from_millis(n)}
fn at(n:usize){AT.store(n,Ordering::SeqCst)}
fn dog(name:&'static str){thread::spawn(move||{thread::sleep(Duration::from_secs(20));println!("{name}: WATCHDOG at step {}",AT.load(Ordering::SeqCst));std::process::exit(3)});}
fn main(){
 let which=std::env::args().nth(1).unwrap(); let w:&'static str=Box::leak(which.into_boxed_str());
 dog(w);
 let pool=Pool::builder().max_threads(4).build().unwrap();
 match w {
 // A: unfit thread in parent's task joins child's task
 "unfit_join"=>{ let p=pool.executor("p").limit(1).build().unwrap(); let c=p.child("c").limit(1).build().unwrap();
   // baseline: same thing on p itself
   p.run(||{let _g=fitness::no_inline(); println!("own: {:?}",p.spawn(||1).unwrap().join());}).unwrap();
   p.run(||{let _g=fitness::no_inline(); let h=c.spawn(||1).unwrap();
     match h.join_timeout(ms(1500)){Ok(r)=>println!("child: {r:?}"),Err(_)=>println!("child: join timed out: not refused with Deadlock")}}).unwrap(); }
 "drain_in_parent"=>{ let p=pool.executor("p").limit(1).build().unwrap(); let c=p.child("c").limit(1).build().unwrap();
   p.run(||{ c.execute(||()).unwrap(); let t=Instant::now(); println!("drain child in parent's task: {:?} after {:?}",c.drain(ms(1000)),t.elapsed()); }).unwrap();
   // guard of parent
   let p=pool.executor("p").limit(1).build().unwrap(); let c=p.child("c").limit(1).build().unwrap();
   let g=p.acquire().unwrap(); c.execute(||()).unwrap(); println!("drain child with parent's guard: {:?}",c.drain(ms(1000))); drop(g);
 }
 // B: nested joiner stands at mid, leaf is shut down
 "join_mid"=>{ let p=pool.executor("p").limit(4).build().unwrap(); let m=p.child("m").limit(1).build().unwrap(); let l=m.child("l").limit(1).build().unwrap();
   let g=m.acquire().unwrap(); let h=l.spawn(||1).unwrap(); let (tx,rx)=mpsc::channel();
   let p2=p.clone(); let t=thread::spawn(move||{p2.run(||{tx.send(format!("{:?}",h.join())).unwrap()}).unwrap()});
   thread::sleep(ms(200)); at(1); let u=l.shutdown_now(); println!("taken out {}",u.len()); drop(u);
   match rx.recv_timeout(ms(1500)){Ok(s)=>println!("join: {s}"),Err(_)=>println!("join of an ended task still blocked 1.5 s after; stats m {:?} ", m.stats().waiting)}
   drop(g); at(2); t.join().unwrap(); println!("after guard dropped: {:?}",rx.try_recv()); }
 "run_mid"=>{ let p=pool.executor("p").limit(4).build().unwrap(); let m=p.child("m").limit(1).build().unwrap(); let l=m.child("l").limit(1).build().unwrap();
   let g=m.acquire().unwrap(); let (tx,rx)=mpsc::channel();
   let (p2,l2)=(p.clone(),l.clone()); let t=thread::spawn(move||{p2.run(||{tx.send(l2.run(||1).map_err(|r|r.reason())).unwrap()}).unwrap()});
   thread::sleep(ms(200)); let _=l.shutdown_now();
   match rx.recv_timeout(ms(1500)){Ok(s)=>println!("run: {s:?}"),Err(_)=>println!("run waiting in l not told Closed 1.5 s after l.shutdown_now(); l.waiting={} m.waiting={} l.drain={:?}",l.stats().waiting,m.stats().waiting,l.drain(ms(100)))}
   drop(g); t.join().unwrap(); println!("after: {:?}",rx.try_recv()); }
 // C: child's drain waits, root is shut down while root's permit held
 "drain_root_shut"=>{ let p=pool.executor("p").limit(4).build().unwrap(); let c=p.child("c").limit(0).build().unwrap();
   for _ in 0..2 {c.execute(||()).unwrap();} let g=p.acquire().unwrap(); let (tx,rx)=mpsc::channel(); let c2=c.clone();
   let t=thread::spawn(move||{tx.send(c2.drain(Duration::MAX)).unwrap()}); thread::sleep(ms(200)); drop(p.shutdown_now());
   match rx.recv_timeout(ms(1500)){Ok(s)=>println!("drain: {s:?}"),Err(_)=>println!("child drain hangs though the child is quiet: {:?}",c.stats())}
   drop(g); thread::sleep(ms(200)); println!("after guard: {:?}",rx.recv_timeout(ms(500))); drop(t); }
 "drain_mid_shut"=>{ let p=pool.executor("p").limit(4).build().unwrap(); let m=p.child("m").limit(4).build().unwrap(); let c=m.child("c").limit(0).build().unwrap();
   for _ in 0..2 {c.execute(||()).unwrap();} let g=m.acquire().unwrap(); let (tx,rx)=mpsc::channel(); let c2=c.clone();
   let _t=thread::spawn(move||{tx.send(c2.drain(Duration::MAX)).unwrap()}); thread::sleep(ms(200)); drop(m.shutdown_now());
   println!("drain: {:?}",rx.recv_timeout(ms(1500))); drop(g); }
 // D: drain of parent where child quiet by cancel / last handle dropped / limit change
 "drain_cancel"=>{ for lvl in 0..3 { let p=pool.executor("p").limit(4).build().unwrap(); let m=p.child("m").limit(0).build().unwrap(); let c=m.child("c").limit(4).build().unwrap();
   let h=c.spawn(||()).unwrap(); let e=[&p,&m,&c][lvl].clone(); let t=thread::spawn(move||e.drain(Duration::MAX)); thread::sleep(ms(100)); assert!(h.cancel()); println!("{:?}",t.join().unwrap()); }
   for lvl in 0..3 { let p=pool.executor("p").limit(4).build().unwrap(); let m=p.child("m").limit(0).build().unwrap(); let c=m.child("c").limit(4).build().unwrap();
   let h=c.spawn(||5).unwrap(); let e=[&p,&m,&c][lvl].clone(); let t=thread::spawn(move||e.drain(Duration::MAX)); thread::sleep(ms(100)); drop(c); m.set_limit(usize::MAX).unwrap_err(); m.set_limit(Executor::MAX_LIMIT).unwrap(); println!("{:?} {:?}",t.join().unwrap(),h.join()); }
   for lvl in 0..2 { let p=pool.executor("p").limit(4).build().unwrap(); let m=p.child("m").limit(0).build().unwrap(); let c=m.child("c").limit(4).build().unwrap();
   let h=c.spawn(||5).unwrap(); drop(c); at(10+lvl); if lvl==0 {drop(p); drop(m);} else {drop(m);drop(p);} println!("last handles: {:?}",h.join()); }
   // child unlimited, root 0, root dropped first
   let p=pool.executor("p").limit(0).build().unwrap(); let c=p.child("c").limit(4).build().unwrap(); let h=c.spawn(||5).unwrap(); drop(p); at(20); drop(c); println!("root 0: {:?}",h.join());
 }
 "strand_all"=>{ let p=pool.executor("p").limit(4).build().unwrap(); let s=p.strand("s").build().unwrap(); let log=Mutex::new(vec![]); 
   let r=s.run_all((0..6).map(|i|{let log=&log;move||{log.lock().unwrap().push(i);i}})).map_err(|r|r.into_reason()).unwrap(); println!("run_all {:?} order {:?}",r,log.lock().unwrap());
   log.lock().unwrap().clear(); s.scope(|sc|{for i in 0..6 {let log=&log; if i%2==0 {sc.spawn(move||log.lock().unwrap().push(i)).map(|_|()).map_err(|r|r.into_reason()).unwrap();} else {sc.dispatch(move||log.lock().unwrap().push(i)).map(|_|()).map_err(|r|r.into_reason()).unwrap();}}}); println!("scope order {:?}",log.lock().unwrap());
   let big=Stripes::new(&p,1).unwrap(); println!("{:?}",big.dispatch("x",||1).unwrap().is_inline());
   for lim in [0usize,1,usize::MAX]{println!("strand limit {lim}: {:?}",p.strand("q").limit(lim).build().map(|_|()).map_err(|e|e.to_string()));}
   println!("cap0 {:?} capmax {:?} ov {:?}",p.child("x").limit(0).queue_capacity(0).build().unwrap().execute(||()).map_err(|r|r.reason()),p.child("x").limit(0).queue_capacity(usize::MAX).build().unwrap().execute(||()).map_err(|r|r.reason()),p.child("x").max_overtakes(usize::MAX).build().is_err());
   println!("depth0 {:?} {:?}",p.child("x").max_inline_depth(0).build().map(|e|e.dispatch(||()).unwrap().is_inline()),p.child("x").max_inline_depth(usize::MAX).build().map(|e|e.dispatch(||()).unwrap().is_inline()));
   println!("run_timeout MAX {:?}",p.child("x").build().unwrap().run_timeout(Duration::MAX,||1).map_err(|r|r.reason()));
 }
 "deep"=>{ let p=pool.executor("p").limit(2).build().unwrap(); let mut v=vec![p.clone()]; for i in 0..5000{let e=v[i].child("d").limit(2).build().unwrap();v.push(e);} let d=v[5000].clone(); at(1);
   println!("{}",d.run(||1).unwrap()); let g=d.acquire().unwrap(); let g2=v[2500].acquire().unwrap(); let h=d.spawn(||7).unwrap(); let h2=v[1].spawn(||8).unwrap(); at(2); drop(g); println!("{:?}",h.join()); drop(g2); println!("{:?}",h2.join());
   v[77].set_limit(0).unwrap(); let hs:Vec<_>=(0..20).map(|i|v[5000-i*10].spawn(move||i).unwrap()).collect(); at(3); v[77].set_limit(1).unwrap(); for h in hs {h.join().unwrap();} at(4);
   let t=Instant::now(); v[77].run(||{v[5000].run(||{v[100].run(||()).unwrap()}).unwrap()}).unwrap(); println!("{:?}",t.elapsed());
   let hs:Vec<_>=(0..20).map(|i|v[5000-i*10].spawn(move||i).unwrap()).collect(); let u=v[40].shutdown_now(); at(5); u.into_iter().for_each(|u|u.run()); let n=hs.into_iter().map(|h|h.join().is_ok()).filter(|x|*x).count(); println!("ok {n}"); println!("{:?}",p.drain(ms(5000))); at(6);
   for e in &v{let s=e.stats(); assert_eq!(s.accepted,s.completed+s.cancelled+s.expired+s.unrun); assert_eq!(s.active,0);} drop(d); drop(v); drop(p); }
 "guards"=>{ let p=pool.executor("p").limit(2).build().unwrap(); let m=p.child("m").limit(2).build().unwrap(); let c=m.child("c").limit(2).build().unwrap(); let s=m.child("s").limit(2).build().unwrap();
   let (a,b)=(c.acquire().unwrap().into_owned(),s.acquire().unwrap().into_owned()); assert!(p.try_run(||()).is_err()); assert_eq!(p.stats().below,2); println!("{:?}",c.acquire_timeout(ms(50)).map(|_|()).map_err(|r|r.reason()));
   let h=c.spawn(||3).unwrap(); let h2=p.spawn(||4).unwrap(); at(1); thread::spawn(move||drop((a,b))).join().unwrap(); println!("{:?} {:?}",h.join(),h2.join());
   let g=c.acquire().unwrap(); let g2=s.acquire().unwrap(); println!("self-deadlock c {:?} m {:?} p {:?} join {:?}",c.run(||()).map_err(|r|r.reason()),m.run(||()).map_err(|r|r.reason()),p.run(||()).map_err(|r|r.reason()),c.spawn(||()).unwrap().join());
   println!("drain m {:?}",m.drain(ms(100))); drop(g); drop(g2); println!("drain p {:?}",p.drain(ms(2000))); for e in [&p,&m,&c,&s]{let s=e.stats(); println!("{} acc {} comp {} canc {} unrun {} active {}",e.name(),s.accepted,s.completed,s.cancelled,s.unrun,s.active);} 
 }
 "guard_outlives"=>{ // owned guard outlives everything; forget; drop in TLS
   let p=pool.executor("p").limit(1).build().unwrap(); let c=p.child("c").limit(1).build().unwrap();
   let g=p.run(||c.try_acquire().map(|g|g.into_owned()).map_err(|r|r.reason())).unwrap(); println!("guard in parent's task with p limit 1: {:?}",g.is_ok());
   println!("acquire in parent's task: {:?}",p.run(||c.acquire().map(|_|()).map_err(|r|r.reason())).unwrap());
   let gp=p.acquire().unwrap(); println!("child.run with parent's guard {:?}",c.run(||()).map_err(|r|r.reason())); drop(gp);
   let g=c.acquire().unwrap().into_owned(); drop(p); drop(c); let e=g.executor().clone(); drop(g); println!("{:?}",e.run(||1).map_err(|r|r.reason())); }
 _=>{} }
 println!("{w}: end");
}
