use std::sync::atomic::*; use std::sync::*; use std::time::*; use std::thread;
use work_permit::*;
fn ms(n:u64)->Duration{Duration::from_millis(n)}
fn main(){
 thread::spawn(move||{thread::sleep(Duration::from_secs(20));println!("WATCHDOG");std::process::exit(3)});
 let pool=Pool::builder().max_threads(2).build().unwrap();
 let log=Arc::new(Mutex::new(vec![])); let mk=|n:&'static str|{let l=log.clone();move||l.lock().unwrap().push(n)};
 let p=pool.executor("p").limit(0).build().unwrap(); let (a,b)=(p.child("a").build().unwrap(),p.child("b").build().unwrap());
 a.execute(mk("1 a")).unwrap(); b.execute(mk("2 b")).unwrap(); p.execute(mk("3 p")).unwrap(); a.execute(mk("4 a")).unwrap();
 p.shutdown_now().into_iter().for_each(|u|u.run()); println!("shutdown_now of p, order of the tasks: {:?}",log.lock().unwrap());
 // fairness
 log.lock().unwrap().clear(); let p=pool.executor("p").limit(1).build().unwrap(); let (a,b)=(p.child("a").build().unwrap(),p.child("b").build().unwrap()); let s=b.strand("s").build().unwrap();
 let g=p.acquire().unwrap(); for _ in 0..6{a.execute(mk("a")).unwrap();} for _ in 0..3{b.execute(mk("b")).unwrap();} for _ in 0..3{s.execute(mk("s")).unwrap();} for _ in 0..2{p.execute(mk("p")).unwrap();} drop(g); p.drain(ms(3000)).unwrap(); println!("turns {:?}",log.lock().unwrap());
 // pool shutdown under child's permits
 let pl=Pool::new(); let p=pl.executor("p").limit(2).build().unwrap(); let c=p.child("c").limit(1).build().unwrap(); let g=c.acquire().unwrap(); println!("pool shutdown with child's guard: {:?}",pl.shutdown(ms(200)).map_err(|e|e.reason())); drop(g); println!("{:?}",pl.shutdown(ms(2000)));
 let pl=Pool::new(); let p=pl.executor("p").limit(2).build().unwrap(); let c=p.child("c").limit(0).build().unwrap(); let h=c.spawn(||1).unwrap(); let t=Instant::now(); println!("pool shutdown c at 0: {:?} {:?}",pl.shutdown(ms(200)).map_err(|e|(e.reason(),e.queued,e.active)),t.elapsed()); c.set_limit(1).unwrap(); println!("{:?} {:?}",pl.shutdown(ms(2000)),h.join());
 println!("root's drain, child's queue: {:?}",{let p=pool.executor("p").limit(2).build().unwrap(); let c=p.child("c").limit(0).build().unwrap(); c.execute(||()).unwrap(); let r=p.drain(ms(100)); drop(c); r});
 // mid drain with queued below: what Unfinished says
 println!("mid's drain: {:?}",{let p=pool.executor("p").limit(2).build().unwrap(); let m=p.child("m").build().unwrap(); let c=m.child("c").limit(0).build().unwrap(); c.execute(||()).unwrap(); m.drain(ms(100))});
 // starvation at mid
 let p=pool.executor("p").limit(1).max_overtakes(0).build().unwrap(); let m=p.child("m").limit(1).max_overtakes(0).build().unwrap(); let l=m.child("l").limit(1).max_overtakes(0).build().unwrap(); let x=p.child("x").limit(1).max_overtakes(0).build().unwrap();
 let stop=Arc::new(AtomicBool::new(false)); let ts:Vec<_>=[m.clone(),x.clone(),p.clone(),m.clone()].into_iter().map(|e|{let st=stop.clone();thread::spawn(move||while !st.load(Ordering::Relaxed){let _=e.try_run(||());let _=e.run_timeout(Duration::from_micros(50),||());let _=e.dispatch(||());})}).collect();
 let mut worst=Duration::ZERO; for _ in 0..1500{let t=Instant::now(); let h=l.spawn(||()).unwrap(); while !h.is_finished(){thread::yield_now(); if t.elapsed()>ms(5000){println!("STARVED");break}} worst=worst.max(t.elapsed());} stop.store(true,Ordering::Relaxed); for t in ts{t.join().unwrap()} println!("worst wait {worst:?}"); println!("{:?}",p.drain(ms(5000)));
 for e in [&p,&m,&l,&x]{let s=e.stats(); assert_eq!(s.accepted,s.completed+s.cancelled+s.expired+s.unrun,"{s:?}");assert_eq!((s.active,s.overtakes),(0,0));}
}
