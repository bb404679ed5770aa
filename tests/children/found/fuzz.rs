use std::sync::atomic::*; use std::sync::*; use std::time::*; use std::thread; use std::cell::RefCell; use std::panic::{catch_unwind,AssertUnwindSafe,resume_unwind};
use work_permit::*;
type S=Ordering; const SC:S=S::SeqCst;
struct N{e:Executor,up:Option<usize>,cap:usize,run:AtomicUsize,strand:bool,order:Mutex<[u64;8]>}
struct T{n:Vec<N>,bad:Mutex<Vec<String>>,seed:u64,closing:bool,boom:bool}
thread_local!{static IN:RefCell<Vec<(u64,usize)>> =RefCell::new(vec![]); static UNRUN:std::cell::Cell<bool>=std::cell::Cell::new(false);}
static STEP:AtomicUsize=AtomicUsize::new(0); static ROUND:AtomicU64=AtomicU64::new(0);
static CUR:Mutex<Option<Arc<T>>> =Mutex::new(None);
static TH:[Mutex<String>;4]=[const{Mutex::new(String::new())};4];
struct Rng(u64); impl Rng{fn next(&mut self)->u64{self.0^=self.0<<13;self.0^=self.0>>7;self.0^=self.0<<17;self.0.wrapping_mul(0x2545F4914F6CDD1D)>>16} fn n(&mut self,k:usize)->usize{(self.next()%k as u64) as usize}}
fn bad(t:&T,s:String){t.bad.lock().unwrap_or_else(|e|e.into_inner()).push(s)}
struct Enter<'a>{t:&'a T,lv:Vec<usize>,pushed:bool}
fn anc(t:&T,n:usize)->Vec<usize>{let mut v=vec![n];while let Some(u)=t.n[*v.last().unwrap()].up{v.push(u)}v}
fn inside(t:&T,n:usize)->bool{IN.with(|i|i.borrow().iter().any(|&(s,m)|s==t.seed&&anc(t,m).contains(&n)))}
fn count(t:&T,lv:&[usize]){for &l in lv{let c=t.n[l].run.fetch_add(1,SC)+1;if c>t.n[l].cap{bad(t,format!("LIMIT node {l} {} > {}",c,t.n[l].cap))}}}
fn enter(t:&T,n:usize)->Enter<'_>{ let un=UNRUN.with(|u|u.replace(false)); if un {return Enter{t,lv:vec![],pushed:false}}
 let lv:Vec<usize>=anc(t,n).into_iter().take_while(|&l|!inside(t,l)).collect(); count(t,&lv); IN.with(|i|i.borrow_mut().push((t.seed,n))); Enter{t,lv,pushed:true}}
impl Drop for Enter<'_>{fn drop(&mut self){ if self.pushed{IN.with(|i|{i.borrow_mut().pop();});} for &l in &self.lv{self.t.n[l].run.fetch_sub(1,SC);} }}
struct Bomb(u8,Option<(Weak<T>,usize)>);
impl Drop for Bomb{fn drop(&mut self){ if let Some((w,n))=self.1.take(){ if let Some(t)=w.upgrade(){ if !thread::panicking(){ let _=catch_unwind(AssertUnwindSafe(||{let _=t.n[n].e.try_run(||1).is_ok(); let _=t.n[n].e.execute(||()).is_ok();})).map_err(std::mem::forget);} } }
  if self.0==1 && !thread::panicking(){panic!("bomb drop")} }}
struct G{g:Option<OwnedPermit>,t:Arc<T>,lv:Vec<usize>} impl Drop for G{fn drop(&mut self){for &l in &self.lv{self.t.n[l].run.fetch_sub(1,SC);} self.g.take();}}
fn body(t:&Arc<T>,n:usize,seed:u64,depth:usize,ord:Option<(usize,u64)>)->Bomb{
 let mut r=Rng(seed|1); let _e=enter(t,n);
 if let Some((th,q))=ord.filter(|_|_e.pushed){ let mut o=t.n[n].order.lock().unwrap_or_else(|e|e.into_inner()); if o[th]>=q{let l=o[th];drop(o);bad(t,format!("ORDER node {n} thread {th} {q} after {l}"))}else{o[th]=q} }
 if depth<3 && r.n(3)==0 { let m=r.n(t.n.len()); let desc=anc(t,m).contains(&n) && IN.with(|i|i.borrow().iter().filter(|x|x.0==t.seed).all(|&(_,f)|anc(t,m).contains(&f))); let s=r.next();
  let t2=t.clone(); let f=move||body(&t2,m,s,depth+1,None);
  match r.n(if desc{8}else{5}){0=>{let _=t.n[m].e.try_run(f).map_err(|x|x.reason());},1=>{let _=t.n[m].e.dispatch(f).map_err(|x|x.reason());},2=>{let _=t.n[m].e.run_timeout(Duration::from_micros(500),f).map_err(|x|x.reason());},
   3=>{if let Ok(h)=t.n[m].e.spawn(f){ let h=h.join_timeout(Duration::from_micros(300)); if let Err(h)=h{ if r.n(2)==0{h.cancel();} } }},
   4=>{if let Ok(g)=t.n[m].e.acquire_timeout(Duration::from_micros(200)){let lv=anc(t,m);count(t,&lv);for &l in &lv{t.n[l].run.fetch_sub(1,SC);}drop(g)}},
   5=>{let _=t.n[m].e.run(f).map_err(|x|x.reason());},
   6=>{if let Ok(h)=t.n[m].e.spawn(f){let _=h.join();}},
   _=>{ let k=1+r.n(3); let t3=t.clone(); let _=t.n[m].e.run_all((0..k).map(|_|{let t3=t3.clone();move||body(&t3,m,s,3,None)})).map_err(|x|x.into_reason());}
  } }
 if r.n(4)==0{thread::yield_now()} if r.n(30)==0{thread::sleep(Duration::from_micros(r.n(300) as u64))}
 if t.boom&&r.n(12)==0{ if r.n(2)==0{panic!("body")}else{std::panic::panic_any(Bomb(1,None))} }
 Bomb(if t.boom&&r.n(10)==0{1}else{0},None)
}
fn main(){
 std::panic::set_hook(Box::new(|i|{let s=i.to_string(); if !(s.contains("bomb drop")||s.contains("body")||s.contains("Box<dyn Any>")){println!("PANIC {s}")}}));
 let a:Vec<u64>=std::env::args().skip(1).map(|x|x.parse().unwrap()).collect(); let (from,secs)=(a[0],a[1]); let mode=a.get(2).copied().unwrap_or(7);
 thread::spawn(||{let mut last=(u64::MAX,Instant::now());loop{thread::sleep(Duration::from_millis(200));let r=ROUND.load(SC);if r!=last.0{last=(r,Instant::now())}
  if last.1.elapsed()>Duration::from_secs(20){println!("WATCHDOG round {r} step {}",STEP.load(SC));for t in &TH{println!("  thread: {}",t.lock().unwrap_or_else(|e|e.into_inner()))} if let Some(t)=CUR.try_lock().ok().and_then(|c|c.clone()){for (i,n) in t.n.iter().enumerate(){println!("  node {i} up {:?} cap {} strand {} dbg {:?} {}",n.up,n.cap,n.strand,n.e,{let s=n.e.stats();format!("lim {} act {} in {} wk {} gd {} below {} free {} q {} wait {}",s.limit,s.active,s.inline,s.on_workers,s.guards,s.below,s.free,s.queued,s.waiting)})}} std::process::exit(3)}}});
 let pool=Pool::builder().max_threads(3).build().unwrap(); let start=Instant::now(); let mut seed=from; let mut slow=0;
 while start.elapsed()<Duration::from_secs(secs){ seed+=1; ROUND.store(seed,SC); STEP.store(0,SC); let mut r=Rng(seed.wrapping_mul(0x9E3779B97F4A7C15)|1); for _ in 0..4{r.next();}
  let closing=mode&1!=0&&r.n(2)==0; let boom=mode&2!=0&&r.n(2)==0; let toggles=mode&4!=0;
  let mut ns:Vec<N>=vec![]; let cnt=2+r.n(6);
  for i in 0..cnt{ let up=if i==0{None}else{Some(r.n(i))}; let strand=i>0&&r.n(3)==0; let cap=if strand{1}else{1+r.n(3)};
   let b=match up{None=>pool.executor("root").limit(cap).leases(r.n(3)>0),Some(u) if strand=>ns[u].e.strand(format!("s{i}")),Some(u)=>ns[u].e.child(format!("c{i}")).limit(cap)};
   let b=if r.n(4)==0{b.queue_capacity(r.n(3))}else{b}; let b=if !strand&&r.n(3)==0{b.max_overtakes(r.n(2))}else{b};
   ns.push(N{e:b.build().unwrap(),up,cap,run:AtomicUsize::new(0),strand,order:Mutex::new([0;8])}); }
  let t=Arc::new(T{n:ns,bad:Mutex::new(vec![]),seed,closing,boom}); *CUR.lock().unwrap()=Some(t.clone());
  let (gtx,grx)=mpsc::channel::<G>(); let grx=Arc::new(Mutex::new(grx)); let stop=Arc::new(AtomicBool::new(false));
  let mut th=vec![];
  for k in 0..3usize{ let t=t.clone(); let gtx=gtx.clone(); let grx=grx.clone(); let mut r=Rng(r.next()|1); let stop=stop.clone();
   th.push(thread::spawn(move||{ let mut hs:Vec<JoinHandle<Bomb>>=vec![]; let mut un:Vec<Unrun>=vec![]; let mut q=0u64; let mut live:Vec<bool>=vec![true;t.n.len()];
    for op in 0..60{ let n=r.n(t.n.len()); let s=r.next(); let o=r.n(20); *TH[k].lock().unwrap()=format!("op {op} kind {o} node {n}"); q+=1; let qq=q; let _=&mut live;
     let res=catch_unwind(AssertUnwindSafe(||{ let t2=t.clone(); let e=&t.n[n].e; let bomb=Bomb(if t.boom&&s%9==0{1}else{0},if s%11==0{Some((Arc::downgrade(&t),s as usize/11%t.n.len()))}else{None});
      let ord=if t.n[n].strand{Some((k,qq))}else{None};
      match o{
       0|1=>{let _=e.try_run(||body(&t,n,s,0,ord)).map_err(|x|x.reason());}
       2|3=>{let _=e.run(||body(&t,n,s,0,ord)).map_err(|x|x.reason());}
       4=>{let _=e.run_timeout(Duration::from_micros(s%800),||body(&t,n,s,0,ord)).map_err(|x|x.reason());}
       5|6|7=>{ if let Ok(Dispatched::Queued(h))=e.dispatch(move||{let _b=bomb;body(&t2,n,s,0,ord)}){hs.push(h)} }
       8|9=>{ if let Ok(h)=e.spawn(move||{let _b=bomb;body(&t2,n,s,0,ord)}){hs.push(h)} }
       10=>{ let _=e.execute(move||{let _b=bomb;let _=body(&t2,n,s,0,ord);}).map_err(|x|x.reason()); }
       11=>{ if !hs.is_empty(){let i=r.n(hs.len()); let h=hs.swap_remove(i); if s%2==0{h.cancel();} match h.join_timeout(Duration::from_micros(s%1000)){Err(h)=>hs.push(h),Ok(Err(e))=>std::mem::forget(e),_=>{}} } }
       12=>{ if !hs.is_empty(){let i=r.n(hs.len()); let h=hs.swap_remove(i); if let Err(e)=h.join(){std::mem::forget(e)} } }
       13=>{ let g=match s%3{0=>e.try_acquire(),_=>e.acquire_timeout(Duration::from_micros(500))}; if let Ok(g)=g{ let lv=anc(&t,n); count(&t,&lv); let g=G{g:Some(g.into_owned()),t:t.clone(),lv}; if s%2==0{let _=gtx.send(g);} } }
       14=>{ let g=grx.lock().unwrap_or_else(|e|e.into_inner()).try_recv(); drop(g) }
       15=>{ if toggles{ let l=if s%3==0{0}else{t.n[n].cap}; let _=e.set_limit(l); thread::yield_now(); if s%2==0{let _=e.set_limit(t.n[n].cap);} } }
       16=>{ e.scope(|sc|{ let mut v=vec![]; for i in 0..s%3{ let t=&t; if let Ok(h)=sc.spawn(move||{body(t,n,s^i,2,None);}){v.push(h)} } if s%2==0{for h in v{ if let Err(e)=h.join(){std::mem::forget(e)} }} }); }
       17=>{ let _=e.run_all((0..s%4).map(|i|{let t=&t;move||{body(t,n,s^i,2,None);}})).map_err(|x|x.into_reason()); }
       18=>{ if let Ok(Dispatched::Queued(h))=e.speculate(move||if s%2==0{Ok(Bomb(0,None))}else{Err(move||{let _b=bomb;body(&t2,n,s,0,None)})}){hs.push(h)} }
       _=>{ if t.closing&&op>30{ match s%6{0=>e.close(),1=>{un.extend(e.shutdown_now())},2=>{let _=e.drain(Duration::from_micros(300));},_=>{}} } }
      } }));
     if let Err(p)=res{std::mem::forget(p)}
     while un.len()>0{ let u=un.pop().unwrap(); if r.n(2)==0{UNRUN.with(|x|x.set(true)); if let Err(p)=catch_unwind(AssertUnwindSafe(||u.run())){std::mem::forget(p); bad(&t,"unrun.run panicked".into())} UNRUN.with(|x|x.set(false));} else if let Err(p)=catch_unwind(AssertUnwindSafe(||drop(u))){std::mem::forget(p);bad(&t,"drop(unrun) panicked".into())} }
    }
    // end
    let _=stop; *TH[k].lock().unwrap()=format!("joining {}",hs.len());
    for h in hs{ let h2=h; match catch_unwind(AssertUnwindSafe(||{ match h2.join(){Err(e)=>std::mem::forget(e),Ok(b)=>std::mem::forget(b)} })){Err(p)=>{std::mem::forget(p);bad(&t,"join panicked".into())}_=>{}} }
    *TH[k].lock().unwrap()="done".into();
   })); }
  drop(gtx);
  STEP.store(1,SC);
  // helper: keep raising limits and dropping guards till threads end
  while th.iter().any(|h|!h.is_finished()){ thread::sleep(Duration::from_millis(1)); if r.n(2)==0{for n in &t.n{let _=n.e.set_limit(n.cap);} let g=grx.lock().unwrap_or_else(|e|e.into_inner()).try_recv(); drop(g); if start.elapsed().as_secs()>10000{break} } }
  STEP.store(2,SC); for h in th{ if h.join().is_err(){bad(&t,"thread died".into())} }
  while let Ok(g)=grx.lock().unwrap().try_recv(){drop(g)}
  for n in &t.n{let _=n.e.set_limit(n.cap);}
  STEP.store(3,SC); let t0=Instant::now(); let first=r.n(t.n.len()); if let Err(e)=t.n[first].e.drain(Duration::from_secs(8)){bad(&t,format!("drain node {first}: {e:?}"))}
  STEP.store(4,SC); if let Err(e)=t.n[0].e.drain(Duration::from_secs(8)){bad(&t,format!("drain root: {e:?}"))} if t0.elapsed()>Duration::from_secs(1){slow+=1}
  thread::sleep(Duration::from_micros(200));
  for (i,n) in t.n.iter().enumerate(){ let mut ok=false; let mut s=n.e.stats(); for _ in 0..50{ s=n.e.stats(); if s.accepted==s.completed+s.cancelled+s.expired+s.unrun && s.active==0&&s.queued==0&&s.waiting==0&&s.free==n.cap&&n.run.load(SC)==0{ok=true;break} thread::sleep(Duration::from_millis(2)); } if !ok{bad(&t,format!("BOOKS node {i} mine {} {s:?}",n.run.load(SC)))} }
  let b=t.bad.lock().unwrap().clone(); if !b.is_empty(){ println!("seed {seed} closing {closing} boom {boom} nodes {:?}",t.n.iter().map(|n|(n.up,n.cap,n.strand)).collect::<Vec<_>>()); for x in b.iter().take(6){println!("  {x}")} }
  *CUR.lock().unwrap()=None;
 }
 println!("rounds {} slow {slow}",seed-from); let _=resume_unwind as fn(_)->_;
}
