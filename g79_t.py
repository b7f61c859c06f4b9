import time,sys
from pathlib import Path
from spark.session import local_session
import spark.jobs.cost as c, spark.report.page as p, spark.ingest.focus as fo
from tests.integration.spark import bills
def wrap(m,n):
    f=getattr(m,n)
    def g(*a,**k):
        t=time.time(); r=f(*a,**k); print(f'   {n} {time.time()-t:.2f}'); return r
    setattr(m,n,g)
for n in ('control_of','cost_table','quarantine','_lines'): wrap(c,n)
wrap(p,'write'); wrap(fo,'read')
t=time.time()
with local_session() as s:
    print('session',time.time()-t)
    for i in range(5):
        b=bills.focus_file(Path(f'/tmp/g79_{i}.csv'),[{}]*(i+3))
        t=time.time(); c.run(focus=b,out=Path('/tmp/g79o')); print('run',time.time()-t)
