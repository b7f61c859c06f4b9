# The command line with all it calls: docker build --tag stillwater . (after `make release`), then
#   docker run --rm -it --user "$(id -u)" -v "$PWD:/stack" -v "$HOME/.aws:/home/stillwater/.aws:ro" stillwater preview prod
# in a directory that `stillwater init` wrote. Spark and the twin are not in it.
# Images by their content: replace tag and digest together. Pulumi's has a tag alone: add the digest
# that `docker buildx imagetools inspect docker.io/pulumi/pulumi-base:TAG` prints.
ARG PULUMI=3.272.0
ARG AWS_CLI=2.31.30@sha256:6c9314d8dd18bcfd11c509e00ea39016c4fb978e42e86df1e4dfd17038b10b78
ARG PYTHON=3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b
FROM docker.io/pulumi/pulumi-base:${PULUMI} AS pulumi
FROM public.ecr.aws/aws-cli/aws-cli:${AWS_CLI} AS aws

# The eviction gate (docs/how-to/eviction-gate.md): docker build --target gate --tag NAME:VERSION .
FROM docker.io/library/python:${PYTHON} AS gate
COPY requirements-gate.txt out/release/stillwater_kafka-*.whl /tmp/stillwater/
RUN pip install --no-cache-dir --require-hashes --requirement /tmp/stillwater/requirements-gate.txt \
 && pip install --no-cache-dir --no-deps /tmp/stillwater/stillwater_kafka-[0-9]*.whl \
 && rm -r /tmp/stillwater
USER 65532
ENTRYPOINT ["python", "-m", "stillwater.inside", "gate"]

FROM docker.io/library/python:${PYTHON}
COPY --from=pulumi /pulumi/bin/ /usr/local/bin/
COPY --from=aws /usr/local/aws-cli/ /usr/local/aws-cli/
RUN ln -s /usr/local/aws-cli/v2/current/bin/aws /usr/local/bin/aws
COPY requirements.txt out/release/stillwater_kafka-*.whl /tmp/stillwater/
RUN pip install --no-cache-dir --require-hashes --requirement /tmp/stillwater/requirements.txt \
 && pip install --no-cache-dir --no-deps /tmp/stillwater/stillwater_kafka-[0-9]*.whl \
 && rm -r /tmp/stillwater
# Pulumi's plugins are fetched by the first preview, into a volume if one is kept here.
ENV PULUMI_HOME=/var/lib/pulumi HOME=/home/stillwater
# Nobody is root in it; whoever --user names writes there.
RUN mkdir --mode 1777 /var/lib/pulumi /home/stillwater
WORKDIR /stack
USER 65532
ENTRYPOINT ["stillwater"]
