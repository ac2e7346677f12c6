/** The alert rules: each fires for what it is about, and not for what is usual. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import t from 'tap'
import { parse, stringify } from 'yaml'
import { scrapeUsed } from '../support/exposed.ts'
import { promtool } from '../support/prometheus.ts'

const file = resolve('deploy/prometheus/console-gateway.rules.yml')

interface Rule {
  readonly alert: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

const { groups } = parse(readFileSync(file, 'utf8')) as { groups: Array<{ rules: Rule[] }> }
const rules = groups.flatMap(group => group.rules)

/** By name without `console_gateway_` and `instance`: a value for each minute, as promtool writes them. */
type Series = Readonly<Record<string, string>>

interface Case {
  readonly fires: Series
  readonly quiet: Series
  /** Of the alert, beside the instance. */
  readonly labels?: Readonly<Record<string, string>>
  /** Minutes. */
  readonly at?: number
}

/** A histogram whose observations, one a second, are all above `over` and at most `to`. */
const histogram = (name: string, labels: string, over: string, to: string): Series => {
  const label = labels === '' ? '' : `${labels},`
  return {
    [`${name}_bucket{${label}le="${over}"}`]: '0x60',
    [`${name}_bucket{${label}le="${to}"}`]: '0+60x60',
    [`${name}_bucket{${label}le="+Inf"}`]: '0+60x60'
  }
}

const cases: Readonly<Record<string, Case>> = {
  ConsoleGatewayDown: {
    fires: { 'up{job="console-gateway"}': '0x60' },
    quiet: { 'up{job="console-gateway"}': '1x60', 'up{job="node"}': '0x60' },
    labels: { job: 'console-gateway' }
  },
  ConsoleGatewayErrors: {
    fires: {
      'requests_total{status="2xx"}': '0+94x60',
      'requests_total{status="5xx"}': '0+6x60'
    },
    quiet: {
      'requests_total{status="2xx"}': '0+96x60',
      'requests_total{status="4xx"}': '0+96x60',
      'requests_total{status="5xx"}': '0+4x60'
    }
  },
  ConsoleGatewaySlow: {
    fires: histogram('request_duration_seconds', 'route="r"', '2.5', '5'),
    quiet: histogram('request_duration_seconds', 'route="r"', '0.5', '1')
  },
  ConsoleGatewaySessionStoreDown: {
    fires: {
      'session_store_up{kind="redis"}': '0x60'
    },
    quiet: { 'session_store_up{kind="redis"}': '1x60' }
  },
  ConsoleGatewayUpstreamDown: {
    fires: {
      'upstream_addresses{upstream="b",state="up"}': '0x60',
      'upstream_addresses{upstream="b",state="open"}': '2x60'
    },
    quiet: {
      'upstream_addresses{upstream="b",state="up"}': '1x60',
      'upstream_addresses{upstream="b",state="open"}': '1x60'
    },
    labels: { upstream: 'b' }
  },
  ConsoleGatewayUpstreamQueue: {
    fires: histogram('upstream_queue_seconds', 'upstream="b"', '1', '2.5'),
    quiet: histogram('upstream_queue_seconds', 'upstream="b"', '0.1', '0.25'),
    labels: { upstream: 'b' }
  },
  ConsoleGatewaySignInsFailing: {
    fires: { 'sign_ins_total{source="s",outcome="failed"}': '0+6x60' },
    quiet: { 'sign_ins_total{source="s",outcome="refused"}': '0+60x60' }
  },
  ConsoleGatewayPasswordGuessing: {
    fires: {
      'sign_ins_total{source="s",outcome="refused"}': '0+60x60',
      'sign_ins_total{source="",outcome="limited"}': '0+60x60',
      'sign_ins_total{source="s",outcome="accepted"}': '0+50x60'
    },
    quiet: {
      'sign_ins_total{source="s",outcome="refused"}': '0+120x60',
      'sign_ins_total{source="s",outcome="accepted"}': '0+200x60'
    }
  },
  ConsoleGatewayConfigRefused: {
    fires: { config_refused: '1x60' },
    quiet: { config_refused: '0x60' }
  },
  ConsoleGatewayBusy: {
    fires: { 'nodejs_eventloop_lag_p99_seconds': '0.2x60', 'info{version="1"}': '1x60' },
    quiet: { 'nodejs_eventloop_lag_p99_seconds': '0.02x60', 'info{version="1"}': '1x60' }
  },
  ConsoleGatewayAuditUnwritable: {
    fires: { audit_writable: '0x60' },
    quiet: { audit_writable: '1x20 0x2 1x38' }
  }
}

/** With the labels of an alert in the place of `{{ $labels.NAME }}`. */
function filled(text: string, labels: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, (_, name: string) => labels[name] ?? '')
}

/** With the instance, and the beginning of our names. */
function inputOf(series: Series) {
  return Object.entries(series).map(([name, values]) => {
    const [, metric = '', labels = ''] = /^(\w+)(?:\{(.*)\})?$/.exec(name) ?? []
    const prefix = /^(?:up$|nodejs_)/.test(metric) ? '' : 'console_gateway_'
    const all = ['instance="gateway:9090"', ...(labels === '' ? [] : [labels])].join(',')
    return { series: `${prefix}${metric}{${all}}`, values }
  })
}

/** As promtool reads it: the rules, each series, and the alerts that they give. */
function testOf({ alert, labels, annotations }: Rule, { at = 59, ...each }: Case) {
  const ofAlert = { instance: 'gateway:9090', ...each.labels }
  const expected = {
    exp_labels: { ...labels, ...ofAlert },
    exp_annotations: Object.fromEntries(
      Object.entries(annotations).map(([name, text]) => [name, filled(text, ofAlert)])
    )
  }
  const test = (name: 'fires' | 'quiet') => ({
    name: `${alert} ${name}`,
    interval: '1m',
    input_series: inputOf(each[name]),
    alert_rule_test: [
      { eval_time: `${at}m`, alertname: alert, exp_alerts: name === 'fires' ? [expected] : [] }
    ]
  })
  return [test('fires'), test('quiet')]
}

t.test('promtool finds no fault in the rules', async t => {
  const { status, text } = promtool(['check', 'rules', file])
  t.equal(status, 0, text)
})

t.test('each alert has a case', async t => {
  t.same(
    Object.keys(cases),
    rules.map(({ alert }) => alert)
  )
})

t.test('each alert fires for its case, and not for the usual one', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'rules-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const tests = rules.flatMap(rule => testOf(rule, cases[rule.alert] ?? { fires: {}, quiet: {} }))
  const path = join(folder, 'tests.yml')
  writeFileSync(path, stringify({ rule_files: [file], evaluation_interval: '1m', tests }))
  const { status, text } = promtool(['test', 'rules', path])
  t.equal(status, 0, text)
})

t.test(
  'promtool finds no fault in the metrics of a gateway but in names of Node’s own',
  async t => {
    const { text } = promtool(['check', 'metrics'], await scrapeUsed(t.after))
    t.same(
      text.split('\n').filter(line => line !== '' && !line.startsWith('nodejs_')),
      []
    )
  }
)
