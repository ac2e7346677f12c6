/** A real Prometheus: each alert fires for what it is about, and not for what is usual. */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'
import { parse, stringify } from 'yaml'
import { running } from '../support/command.ts'
import { scrapeUsed } from '../support/exposed.ts'
import { testGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { until } from '../support/until.ts'

const file = resolve('deploy/prometheus/console-gateway.rules.yml')

interface Rule {
  readonly alert: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

const { groups } = parse(readFileSync(file, 'utf8')) as { groups: Array<{ rules: Rule[] }> }
const rules = groups.flatMap(group => group.rules)

/** Series without `console_gateway_` and `instance`, each with a value for each minute, as promtool writes them. */
interface Case {
  readonly fires: readonly string[]
  readonly quiet: readonly string[]
  /** Of the alert, beside the instance. */
  readonly labels?: Readonly<Record<string, string>>
}

/** A histogram whose observations, one a second, are all above `over` and at most `to`. */
const histogram = (name: string, label: string, over: string, to: string) =>
  [`${over}"} 0x60`, `${to}"} 0+60x60`, '+Inf"} 0+60x60'].map(
    end => `${name}_bucket{${label},le="${end}`
  )
const signIns = (outcome: string, values: string) =>
  `sign_ins_total{source="s",outcome="${outcome}"} ${values}`

const cases: Readonly<Record<string, Case>> = {
  ConsoleGatewayDown: {
    fires: ['up{job="console-gateway"} 0x60'],
    quiet: ['up{job="console-gateway"} 1x60', 'up{job="node"} 0x60'],
    labels: { job: 'console-gateway' }
  },
  ConsoleGatewayErrors: {
    fires: ['requests_total{status="2xx"} 0+94x60', 'requests_total{status="5xx"} 0+6x60'],
    quiet: ['2xx"} 0+96x60', '4xx"} 0+96x60', '5xx"} 0+4x60'].map(
      end => `requests_total{status="${end}`
    )
  },
  ConsoleGatewaySlow: {
    fires: histogram('request_duration_seconds', 'route="r"', '2.5', '5'),
    quiet: histogram('request_duration_seconds', 'route="r"', '0.5', '1')
  },
  ConsoleGatewaySessionStoreDown: {
    fires: ['session_store_up{kind="redis"} 0x60'],
    quiet: ['session_store_up{kind="redis"} 1x60']
  },
  ConsoleGatewayUpstreamDown: {
    fires: ['up"} 0x60', 'open"} 2x60'].map(end => `upstream_addresses{upstream="b",state="${end}`),
    quiet: ['up"} 1x60', 'open"} 1x60'].map(end => `upstream_addresses{upstream="b",state="${end}`),
    labels: { upstream: 'b' }
  },
  ConsoleGatewayUpstreamQueue: {
    fires: histogram('upstream_queue_seconds', 'upstream="b"', '1', '2.5'),
    quiet: histogram('upstream_queue_seconds', 'upstream="b"', '0.1', '0.25'),
    labels: { upstream: 'b' }
  },
  ConsoleGatewaySignInsFailing: {
    fires: [signIns('failed', '0+6x60')],
    quiet: [signIns('refused', '0+60x60')]
  },
  ConsoleGatewayPasswordGuessing: {
    fires: [
      signIns('refused', '0+60x60'),
      'sign_ins_total{source="",outcome="limited"} 0+60x60',
      signIns('accepted', '0+50x60')
    ],
    quiet: [signIns('refused', '0+120x60'), signIns('accepted', '0+200x60')]
  },
  ConsoleGatewayConfigRefused: {
    fires: ['config_refused 1x60'],
    quiet: ['config_refused 0x60']
  },
  ConsoleGatewayBusy: {
    fires: ['nodejs_eventloop_lag_p99_seconds 0.2x60', 'info{version="1"} 1x60'],
    quiet: ['nodejs_eventloop_lag_p99_seconds 0.02x60', 'info{version="1"} 1x60']
  },
  ConsoleGatewayAuditUnwritable: {
    fires: ['audit_writable 0x60'],
    quiet: ['audit_writable 1x20 0x2 1x38']
  }
}

/** With the instance, and the beginning of our names. */
function inputOf(line: string) {
  const [, metric = '', labels = '', values = ''] = /^(\w+)(?:\{(.*)\})? (.*)$/.exec(line) ?? []
  const prefix = /^(?:up$|nodejs_)/.test(metric) ? '' : 'console_gateway_'
  const all = ['instance="gateway:9090"', ...(labels === '' ? [] : [labels])].join(',')
  return { series: `${prefix}${metric}{${all}}`, values }
}

/** As promtool reads it: the rules, each series, and the alerts that they give. */
function testsOf({ alert, labels, annotations }: Rule) {
  const { fires, quiet, labels: more } = cases[alert] ?? { fires: [], quiet: [] }
  const ofAlert: Record<string, string> = { instance: 'gateway:9090', ...more }
  const filled = JSON.stringify(annotations).replaceAll(
    /\{\{ \$labels\.(\w+) \}\}/g,
    (_, name: string) => ofAlert[name] ?? ''
  )
  const fired = {
    exp_labels: { ...labels, ...ofAlert },
    exp_annotations: JSON.parse(filled) as object
  }
  return [fires, quiet].map(series => ({
    name: `${alert} ${series === fires ? 'fires' : 'is quiet'}`,
    interval: '1m',
    input_series: series.map(inputOf),
    alert_rule_test: [
      { eval_time: '59m', alertname: alert, exp_alerts: series === fires ? [fired] : [] }
    ]
  }))
}

/** @returns the exit code, and what promtool wrote */
function promtool(words: readonly string[], input = '') {
  const { status, stdout, stderr, error } = spawnSync('promtool', words, {
    input,
    encoding: 'utf8'
  })
  if (error !== undefined) throw error
  return { status, text: stdout + stderr }
}

t.test('promtool finds no fault in the rules, and each alert has a case', async t => {
  t.match(promtool(['check', 'rules', file]), { status: 0 })
  const alerts = rules.map(({ alert }) => alert)
  t.same(Object.keys(cases), alerts)
})

t.test('each alert fires for its case, and not for the usual one', async t => {
  const tests = rules.flatMap(testsOf)
  const path = join(temporaryFolder(), 'tests.yml')
  writeFileSync(path, stringify({ rule_files: [file], evaluation_interval: '1m', tests }))
  const { status, text } = promtool(['test', 'rules', path])
  t.equal(status, 0, text)
})

t.test('promtool finds no fault in the metrics but in names of Node’s own', async t => {
  const { text } = promtool(['check', 'metrics'], await scrapeUsed(t.after))
  const faults = text.split('\n').filter(line => line !== '' && !line.startsWith('nodejs_'))
  t.same(faults, [])
})

t.test('Prometheus reads the metrics', async t => {
  const { url, opsUrl } = await testGateway(t.after, { gateway: { ops: { openMetrics: true } } })
  const folder = temporaryFolder()
  const config = join(folder, 'prometheus.yml')
  const targets = [new URL(opsUrl).host]
  const jobs = [{ job_name: 'gateway', static_configs: [{ targets }] }]
  const timing = { scrape_interval: '1s', scrape_timeout: '1s' }
  writeFileSync(config, stringify({ global: timing, scrape_configs: jobs }))
  const address = `127.0.0.1:${await freePort()}`
  const options = [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    `--web.listen-address=${address}`
  ]
  running(t.after, 'prometheus', options)
  const ask = async (path: string) =>
    ((await (await fetch(`http://${address}/api/v1/${path}`)).json()) as any).data
  await until('a scrape is there', async () => {
    const [target] = (await ask('targets')).activeTargets
    if (target?.health === 'down') throw new Error(target.lastError)
    return target?.health === 'up'
  })
  await fetch(`${url}/api/x`, { headers: { connection: 'close' } })
  const errors = 'sum(console_gateway_errors_total{code="route.unknown"})'
  await until('Prometheus has the request', async () => {
    const { result } = await ask(`query?query=${encodeURIComponent(errors)}`)
    return result[0]?.value[1] === '1'
  })
})
