# Console Gateway. The image holds no config but that of the demo: mount a folder at /app/config.
#
#   docker build -t console-gateway .
#   docker run --rm --stop-timeout 20 -v ./config:/app/config:ro -p 127.0.0.1:8080:8080 console-gateway
#   docker run --rm -it console-gateway hash-password
#   docker run --rm -it -p 127.0.0.1:8080:8080 -p 127.0.0.1:9090:9090 console-gateway demo
#
# Behind a registry of your own: --secret id=npmrc,src=$HOME/.npmrc (it stays out of every layer).

# On the machine that builds, whatever the image is for: no package has machine code.
FROM --platform=$BUILDPLATFORM node:24-bookworm-slim AS base
WORKDIR /app
COPY package.json package-lock.json ./


FROM base AS build
RUN --mount=type=secret,id=npmrc,target=/root/.npmrc,required=false \
    --mount=type=cache,target=/root/.npm \
    npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json build.js ./
COPY src src
COPY presets presets
COPY config config
COPY examples examples
# What does not even start fails here, and not where it is deployed.
RUN npm run build && node dist/launch.js help >/dev/null


FROM base AS dependencies
RUN --mount=type=secret,id=npmrc,target=/root/.npmrc,required=false \
    --mount=type=cache,target=/root/.npm \
    npm ci --ignore-scripts --no-audit --no-fund --omit=dev && \
    ! find node_modules -name '*.node' | grep .


FROM node:24-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
# A new volume takes over this folder's owner and mode: what the gateway makes for itself, it alone may read.
RUN install -d -o 1000 -g 1000 -m 0700 /var/lib/console-gateway
# Everything else belongs to root: the gateway cannot change its own program.
COPY --from=dependencies /app/package.json ./
COPY --from=dependencies /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY bin bin
COPY presets presets
# `docker exec CONTAINER console-gateway status -c /app/config`
RUN ln -s /app/bin/console-gateway.js /usr/local/bin/console-gateway
# What is compiled here starts sooner; at run time nothing can be written there.
RUN console-gateway help >/dev/null
USER 1000:1000
EXPOSE 8080 9090
# Where a config of the demo's kind listens; on loopback no other container could reach it.
ENV LISTEN=0.0.0.0:8080 OPS_LISTEN=0.0.0.0:9090
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --start-interval=1s --retries=3 \
  CMD ["node", "dist/launch.js", "health"]
# Node itself is process 1: it gets SIGTERM and drains, which takes up to drain.notice + drain.grace (15 s by default).
# Half the memory that Node takes by itself under load (docs/operations.md, Memory).
ENV MALLOC_ARENA_MAX=1 MALLOC_TRIM_THRESHOLD_=262144 MALLOC_MMAP_THRESHOLD_=262144
ENTRYPOINT ["node", "--min-semi-space-size=8", "--max-semi-space-size=8", "dist/launch.js"]
CMD ["start", "-c", "/app/config"]
# Last, since they change with every build.
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="console-gateway" \
      org.opencontainers.image.description="The gateway between an administration console and the back-ends a company already has" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.base.name="docker.io/library/node:24-bookworm-slim"
