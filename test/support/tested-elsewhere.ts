/**
 * Files of src without a unit test at the same path in test, and where they are tested instead: through the command,
 * the running gateway or the adapter's suite that shows their effect. The gate (`floors.ts`) holds it against the tree.
 */

/** By the test, its path below `test` without `.test.ts`. */
const byTest: Readonly<Record<string, readonly string[]>> = {
  'app/stalled-connections': ['app/open-sockets'],
  'admin/state-stream': ['admin/event-stream'],
  'admin/access': [
    'admin/listener',
    'admin/operator-cookie',
    'admin/response-headers',
    'admin/sign-in',
    'app/operator-sign-in',
    'config/schema/operators',
    'process/server/admin-routes',
    'services/operator-sessions'
  ],
  'admin/acts': ['admin/forwarded', 'admin/operator'],
  'admin/config-data': ['process/ops/config-view'],
  'process/ops/replica-config': [
    'admin/replicas',
    'cli/status-of-all',
    'process/ops/rollback-of-all'
  ],
  'limits/usage/suggest': ['limits/usage/whom', 'limits/usage/notes'],
  'admin/now': ['admin/now-schema', 'process/operated', 'process/ops/data'],
  'process/server/present': ['app/request-rates', 'process/server/merge-present'],
  'admin/hosts': ['admin/browser-guard'],
  'admin/page-files': ['admin/page/bundle'],
  'admin/page/texts/texts': [
    'admin/page/texts/config',
    'admin/page/texts/ledger',
    'admin/page/texts/limits',
    'admin/page/texts/maintenance',
    'admin/page/texts/now',
    'admin/page/texts/requests',
    'admin/page/texts/sessions',
    'admin/page/texts/shell'
  ],
  'browser/ops-fluent': ['admin/page/panels/session-reader'],
  'browser/ops-panels': [
    'admin/page/panels/config',
    'admin/page/panels/config-truth',
    'admin/page/panels/ledger',
    'admin/page/panels/ledger-lines',
    'admin/page/panels/limits',
    'admin/page/panels/lockouts',
    'admin/page/panels/maintenance',
    'admin/page/panels/requests',
    'admin/page/panels/revision-diff',
    'admin/page/panels/sessions',
    'admin/page/panels/status-pill',
    'admin/page/panels/timeline',
    'admin/page/panels/caller-text',
    'admin/page/panels/what-if',
    'admin/page/ui/confirm',
    'admin/page/ui/settled'
  ],
  'browser/ops-shell': [
    'admin/page/api',
    'admin/page/api-types',
    'admin/page/boot',
    'admin/page/format',
    'admin/page/hidden-tab',
    'admin/page/i18n',
    'admin/page/live',
    'admin/page/main',
    'admin/page/panels/now',
    'admin/page/panels/now-parts',
    'admin/page/shell',
    'admin/page/sign-in',
    'admin/page/store',
    'admin/page/theme',
    'admin/page/ui/chart',
    'admin/page/ui/icons',
    'admin/page/ui/layout',
    'admin/page/ui/pill',
    'admin/page/ui/states',
    'admin/page/ui/table'
  ],
  'admin/request-schemas': ['app/hooks/validation'],
  'api-docs/openapi': [
    'api-docs/answer-schema',
    'api-docs/contract-components',
    'api-docs/describe',
    'api-docs/error-codes',
    'api-docs/operations',
    'api-docs/own-responses',
    'api-docs/types',
    'contract/from-type'
  ],
  'app/endpoints/login-answer': [
    'app/endpoint-answers',
    'app/endpoints/send-answer',
    'config/schema/answer'
  ],
  'app/endpoints/answered': ['app/answered-routes', 'app/endpoints/ignored-bodies'],
  'app/endpoints/merged': ['app/endpoints/response-work'],
  'app/endpoints/profile': ['app/compile-profile'],
  'app/bound-streams': ['app/endpoints/bound-stream'],
  'app/shared-calls': ['app/copy-key', 'app/route-copies'],
  'app/endpoints/login': [
    'config/schema/request-bodies',
    'login/credential-source',
    'session/lists'
  ],
  'app/endpoints/proxied': [
    'app/compile-routes',
    'app/shaped-values',
    'app/credential-sources',
    'app/endpoints/exchange',
    'app/endpoints/http-proxy-adapter',
    'proxy/response',
    'proxy/linked-list'
  ],
  'errors': ['error-kind', 'ops-errors', 'sign-in-errors'],
  'app/hooks/captcha-jar': ['app/endpoints/captcha-stages'],
  'app/endpoints/vouching': ['app/endpoints/refused-sign-in', 'login/passed-on'],
  'app/endpoints/refresh': ['config/schema/refresh'],
  'app/endpoints/session': ['session/describe'],
  'app/endpoints/shaped': ['shaping/entity-tag'],
  'app/endpoints/unknown': ['app/endpoints/known-paths'],
  'app/hooks/lockout': [
    'app/hooks/known-browser',
    'app/hooks/leaving',
    'limits/lockout/admission-queue'
  ],
  'app/hooks/metrics': ['app/app-metrics', 'observability/metrics', 'services/session-metrics'],
  'session/census': ['session/expiries'],
  'cli/why': ['cli/why-text'],
  'e2e/attempts': ['app/hooks/session-trail', 'app/remember-requests'],
  'cli/check': ['config/load/yaml-faults'],
  'cli/live-parts': ['dry-run/live-parts'],
  'cli/live-responses': ['dry-run/live-route', 'dry-run/live-upstreams'],
  'cli/completion': ['cli/complete'],
  'cli/contract': ['cli/contract-subject', 'cli/upstream-responses'],
  'cli/explain': [
    'admin/limits',
    'app/hooks/gate',
    'cli/admin-client',
    'dry-run/explain/decision',
    'dry-run/explain/body-time-outs',
    'dry-run/explain/error-status',
    'dry-run/explain/explanation',
    'dry-run/explain/forwarding',
    'dry-run/explain/gates',
    'dry-run/explain/limits',
    'dry-run/explain/own-answer',
    'dry-run/explain/request',
    'dry-run/explain/websocket',
    'dry-run/traced-app'
  ],
  'cli/hash-password': ['cli/prompt'],
  'cli/init/families': [
    'cli/init/envelope',
    'cli/init/lists',
    'cli/init/transport',
    'cli/init/user'
  ],
  'cli/init/hints': ['cli/init/login-fields'],
  'cli/init/init': [
    'cli/init/answers',
    'cli/init/client',
    'cli/init/examples',
    'cli/init/gateway-file',
    'cli/init/limits-file',
    'cli/init/model',
    'cli/init/questions',
    'cli/init/options',
    'cli/init/paths',
    'cli/init/proposal',
    'cli/init/routes',
    'cli/init/routes-file',
    'cli/init/side-by-side',
    'cli/init/sign-in',
    'cli/init/yaml'
  ],
  'cli/limits/caller': [
    'admin/caller-limits',
    'limits/counting/callers',
    'limits/counting/forget-subject',
    'limits/counting/redis-callers'
  ],
  'cli/limits/simulate': [
    'cli/limits/line-counts',
    'cli/limits/limits',
    'cli/limits/log-lines',
    'cli/limits/picture',
    'cli/limits/progress',
    'cli/limits/public-paths'
  ],
  'cli/limits/suggest': ['limits/usage/usage'],
  'cli/lockouts': ['admin/lockouts'],
  'cli/main': ['cli/colours', 'cli/command', 'cli/commands', 'cli/output', 'node-version'],
  'cli/ways': ['cli/invocation', 'cli/usage'],
  'cli/plan': ['config/load/plan', 'config/load/admin-access'],
  'cli/reload': ['admin/config', 'cli/status', 'process/reload/log-lines', 'process/status'],
  'cli/schemas': ['cli/reference'],
  'cli/sessions': ['admin/find-users', 'admin/sessions'],
  'cli/shape': ['cli/changes', 'cli/header-option'],
  'cli/start': ['launch'],
  'cli/init/presets': ['cli/init/preset-source'],
  'cli/users': ['cli/config-change', 'cli/replace-file', 'cli/users-text', 'cli/yaml-text'],
  'config/check/server-tls': ['config/schema/certificate-pair'],
  'config/check/check': [
    'config/check/clashes',
    'config/check/request-mapping',
    'config/check/expectations',
    'config/check/install',
    'config/check/limits',
    'config/check/maintenance',
    'config/check/operation',
    'config/check/paths',
    'config/check/reach',
    'config/check/report',
    'config/check/session',
    'config/check/response-sizes',
    'config/check/shapes',
    'config/check/sources',
    'config/check/upstreams',
    'config/check/users'
  ],
  'config/load/differences': ['config/load/risks'],
  'config/load/layers': ['config/load/document'],
  'cli/presets': ['config/load/merged'],
  'config/load/written': ['config/load/config-hash'],
  'config/load/presets': ['config/schema/presets'],
  'config/load/load': [
    'config/schema/config',
    'config/schema/console-files',
    'config/schema/endpoints',
    'config/schema/envelope',
    'config/load/named-files',
    'config/load/read-file',
    'config/schema/gateway',
    'config/schema/host-port',
    'config/schema/identity',
    'config/schema/lifecycle',
    'config/schema/limits',
    'config/schema/lockout',
    'config/schema/log',
    'config/schema/login',
    'config/schema/ops',
    'config/schema/own-endpoints',
    'config/schema/parts',
    'config/schema/copies',
    'config/schema/primitives',
    'config/schema/proxied',
    'config/schema/request-mapping',
    'config/schema/redis',
    'config/schema/route',
    'config/schema/routes',
    'config/schema/server',
    'config/schema/session',
    'config/schema/shapes',
    'config/schema/source-name',
    'config/schema/sign-in-calls',
    'config/schema/sign-in-outcomes',
    'config/schema/upstream-login',
    'config/schema/upstreams',
    'config/schema/users'
  ],
  'config/schema/contracts': ['config/check/contracts', 'json-schema/anchors'],
  'app/hooks/maintenance': ['config/schema/maintenance'],
  'contract/drift': ['contract/contract'],
  'dry-run/expectations': [
    'config/schema/expectations',
    'dry-run/offline-app',
    'dry-run/try-config'
  ],
  'proxy/parts': ['proxy/merge-parts'],
  'proxy/token-names': ['proxy/lenient-names'],
  'e2e/parts': ['app/compile-parts', 'app/endpoints/aggregated', 'app/endpoints/pending-parts'],
  'e2e/refused-headers': ['config/check/fields', 'config/schema/header-names'],
  'e2e/reload-under-load': ['app/yield'],
  'json-schema/compile': [
    'json-schema/closed-schema',
    'json-schema/plain-value',
    'json-schema/unevaluated-errors'
  ],
  'json/body': ['json/coding', 'json/digits', 'json/json-fault', 'json/values'],
  'json/exact-jsonata': ['json/decimal'],
  'limits/counting/tally': [
    'limits/counting/exceeded-keys',
    'limits/counting/fallback-tally',
    'limits/counting/lease',
    'limits/counting/leases',
    'limits/counting/memory-tally',
    'limits/counting/redis-tally',
    'limits/counting/rules'
  ],
  'limits/lockout/lockout': [
    'limits/lockout/fallback-lockouts',
    'limits/lockout/redis-lockouts',
    'limits/redis-keys'
  ],
  'limits/replay/replay': [
    'limits/counting/plan',
    'limits/replay/reorder-buffer',
    'limits/replay/report'
  ],
  'limits/usage/redis-usage': ['limits/usage/hours', 'limits/usage/record'],
  'login/token-refresh': ['app/hooks/token-refresh'],
  'proxy/headers': ['proxy/cookie-header'],
  'observability/audit/ledger': [
    'observability/audit/abandoned-chains',
    'observability/audit/chain',
    'observability/audit/chain-files',
    'observability/audit/entry',
    'observability/audit/folder',
    'observability/audit/head',
    'observability/audit/ledger-queue',
    'observability/audit/line',
    'observability/audit/old-files',
    'observability/audit/tail'
  ],
  'observability/audit/verify': [
    'observability/audit/chain-report',
    'observability/audit/chain-verifier'
  ],
  'e2e/audit': [
    'admin/act-ledger',
    'admin/audit',
    'admin/audit-stream',
    'app/hooks/audit',
    'cli/audit/audit',
    'cli/audit/line-in-words',
    'cli/audit/place',
    'cli/audit/verify',
    'config/check/audit',
    'config/schema/audit',
    'services/audit-heads'
  ],
  'process/audit': ['process/readiness'],
  'observability/trail-bytes': ['observability/trail-names'],
  'observability/traces/trace-context': [
    'observability/traces/random-ids',
    'observability/traces/sampler'
  ],
  'observability/traces/spans': [
    'observability/traces/otlp-json',
    'observability/traces/otlp-protobuf'
  ],
  'observability/traces/exporter': [
    'observability/traces/collector',
    'observability/traces/partial-success'
  ],
  'e2e/traces': ['observability/traces/outgoing', 'observability/traces/tracer', 'services/traces'],
  'observability/log': ['observability/unprintable', 'services/logger'],
  'process/cluster/lease-relay': ['limits/counting/machine-limits', 'services/machine-limits'],
  'process/cluster/primary': ['process/cluster/worker'],
  'process/cluster/worker-pool': ['process/cluster/worker-handle'],
  'process/gateway': [
    'admin/server',
    'app/app',
    'app/checks',
    'app/context',
    'app/endpoints/console',
    'app/fastify',
    'process/server/public-server',
    'services/limits',
    'services/services',
    'services/shared'
  ],
  'process/reload/reload': [
    'app/generation-services',
    'process/reload/outcome',
    'process/reload/revisions'
  ],
  'process/reload/user-review': ['login/changed-users', 'session/review', 'session/review-writer'],
  'process/reload/validator': ['config/load/cloneable', 'process/reload/validator-thread'],
  'process/reload/watcher': ['config/load/inputs'],
  'redis/replicated': [
    'services/redis-replicated',
    'session/redis-scripts',
    'session/revocation-journal'
  ],
  'redis/sentinels': ['services/redis-primary', 'services/redis-sentinels'],
  'redis/shapes': ['services/redis'],
  'session/redis-store': [
    'session/former-index',
    'session/redis-context',
    'session/redis-epoch',
    'session/redis-index',
    'session/redis-locks',
    'session/redis-records'
  ],
  'session/session': ['session/identity-key', 'session/store'],
  'shaping/expressions': [
    'shaping/expression-lanes',
    'shaping/expression-runner',
    'shaping/expression-thread'
  ],
  'app/long-bodies': [
    'app/endpoints/send-apart',
    'app/endpoints/shape-apart',
    'app/shaping-task',
    'contract/findings'
  ],
  'app/shaping-threads': ['app/shaping-thread'],
  'json/error-body': ['config/schema/upstream-errors'],
  'shaping/custom-envelope': [
    'config/schema/custom-envelope',
    'config/schema/response-codes',
    'shaping/error-extra',
    'shaping/success-codes'
  ],
  'shaping/envelope': ['shaping/dialect', 'shaping/success'],
  'shaping/shape': ['config/schema/shape-steps', 'shaping/members', 'shaping/status'],
  'wire/bodies': ['app/hooks/json-body'],
  'wire/cross-site': ['app/hooks/cors'],
  'wire/cookies': ['app/hooks/session'],
  'wire/headers': ['app/hooks/standard-headers'],
  'wire/request-ids': ['app/hooks/unrouted'],
  'wire/logs': [
    'app/hooks/access-log',
    'app/hooks/context',
    'app/hooks/request-facts',
    'app/hooks/request-log'
  ],
  'wire/paths': ['app/hooks/request-policy'],
  'wire/sign-in-abuse': ['app/hooks/rate-limit-adapter', 'limits/lockout/account'],
  'wire/stalled-readers': ['app/hooks/stalled-readers'],
  'wire/streams': ['proxy/event-stream', 'proxy/stream-share', 'app/endpoints/streamed-response'],
  'wire/trusted-proxies': ['app/hooks/forwarded-for'],
  'cli/check-live': ['services/reach'],
  'services/replica-bus': [
    'services/ops-services',
    'services/redis-channels',
    'services/replica-directory',
    'services/replica-seal'
  ],
  'wire/upstream-addresses': ['services/upstream-events'],
  'e2e/restart': [
    'process/cluster/held-listeners',
    'admin/restart',
    'cli/restart',
    'process/ending',
    'movable-state',
    'process/restart/messages',
    'process/restart/successor'
  ],
  'wire/uploads': ['proxy/request-body'],
  'wire/upstream-faults': ['proxy/upstream'],
  'wire/vices': ['proxy/time-outs'],
  'proxy/addresses': ['proxy/address'],
  'proxy/resolver': ['proxy/address-set'],
  'proxy/retries': ['proxy/call', 'proxy/retry-budget'],
  'wire/websocket': [
    'app/endpoints/websocket',
    'app/endpoints/websocket-slots',
    'app/hooks/upgrade',
    'config/schema/websocket',
    'proxy/direct-connection',
    'proxy/websocket/handshake'
  ]
}

/** @param sources of src, @param tests of test, each below its folder and without what stands behind the name */
export function problemsOfTests(sources: readonly string[], tests: readonly string[]): string[] {
  const elsewhere = Object.values(byTest).flat()
  return [
    ...sources
      .filter(file => !tests.includes(file) && !elsewhere.includes(file))
      .map(
        file =>
          `src/${file} has no test/${file}.test.ts: write one, or say in test/support/tested-elsewhere.ts where it is tested`
      ),
    ...elsewhere
      .filter(
        (file, index) =>
          tests.includes(file) || !sources.includes(file) || elsewhere.indexOf(file) !== index
      )
      .map(file => `test/support/tested-elsewhere.ts names ${file} without need, or twice`),
    ...Object.keys(byTest)
      .filter(test => !tests.includes(test))
      .map(
        test => `test/support/tested-elsewhere.ts names test/${test}.test.ts, which is not there`
      )
  ]
}
