import os,time
os.environ.update(AWS_ACCESS_KEY_ID='x',AWS_SECRET_ACCESS_KEY='x',AWS_DEFAULT_REGION='us-east-1')
from moto import mock_aws
import boto3
from pathlib import Path
from local.place import Place
from local.aws import billing
T=lambda **k:[{'Key':a.replace('__',':'),'Value':b} for a,b in k.items()]
with mock_aws():
    ec2=boto3.client('ec2'); eks=boto3.client('eks'); ami=ec2.describe_images()['Images'][0]['ImageId']
    def run(z,t,tags):
        r=ec2.run_instances(ImageId=ami,MinCount=1,MaxCount=1,InstanceType=t,Placement={'AvailabilityZone':z},BlockDeviceMappings=[{'DeviceName':'/dev/xvda','Ebs':{'VolumeSize':20,'VolumeType':'gp3','DeleteOnTermination':True}}],TagSpecifications=[{'ResourceType':k,'Tags':tags} for k in ('instance','volume')])
        return r['Instances'][0]['InstanceId']
    ids=[]
    for z in 'abc':
        for p,t in (('controller','m7g.large'),('broker','r7g.large')):
            ids.append(run('us-east-1'+z,t,T(stillwater__cluster='harbour',stillwater__pool=p)))
        run('us-east-1'+z,'m7i.large',T(stillwater__cluster='harbour'))
        for pool,i in (('controller','abc'.index(z)),('broker',10*('abc'.index(z)+1))):
            ec2.create_volume(Size=100,AvailabilityZone='us-east-1'+z,VolumeType='gp3',Iops=6000 if pool=='broker' else 3000,Throughput=250 if pool=='broker' else 125,TagSpecifications=[{'ResourceType':'volume','Tags':[{'Key':'stillwater:cluster','Value':'harbour'},{'Key':'kubernetes.io/created-for/pvc/name','Value':f'data-0-harbour-{pool}-{z}-{i}'}]}])
    ec2.terminate_instances(InstanceIds=[ids[1]])
    eks.create_cluster(name='local-harbour',roleArn='arn:aws:iam::123456789012:role/x',resourcesVpcConfig={'subnetIds':[]},tags={'stillwater:cluster':'harbour'})
    now=time.time()
    b=billing.write_bill(Place(79,Path('/tmp')),ec2=ec2,eks=eks,out=Path('/tmp/g79bill'),started_at=now-1,ended_at=now+140,bytes_between_zones=12345678)
    print(b)
from spark.jobs import cost
t=time.time()
r=cost.run(cur=b.path,out=Path('/tmp/g79out2'))
print(r.table()); print(r.bill_total,r.report_total,r.amortised_total,r.rows,r.bad_rows,time.time()-t,str(b.total)==str(r.report_total),r.components)
