/** What the dashboard, the alerts and the documents name is exposed by a running gateway. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { metricsIn, scrapeUsed } from '../support/exposed.ts'

type Tree = Record<string, any>

/** Labels that Prometheus adds, and those of buckets. */
const added = ['job', 'instance', 'le']

const text = await scrapeUsed(t.teardown)
const exposed = metricsIn(text)

/** The metrics of a PromQL expression, and the labels that it selects or groups by. */
function namesIn(expression: string) {
  const plain = expression.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""')
  const names = plain.match(/\b(?:console_gateway|process|nodejs)_\w+/g) ?? []
  const metrics = names.map(name => {
    const family = name.replace(/_(?:bucket|sum|count)$/, '')
    return exposed.has(family) ? family : name
  })
  const selected = Array.from(plain.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*""/g), ([, label]) => label)
  const grouped = Array.from(plain.matchAll(/\bby\s*\(([^)]*)\)/g), ([, labels = '']) =>
    labels.split(',').map(label => label.trim())
  ).flat()
  return { metrics, labels: [...selected, ...grouped] as string[] }
}

/** What an expression names and nobody exposes. */
function unknownIn(expression: string): string[] {
  const { metrics, labels } = namesIn(expression)
  const known = new Set([...added, ...metrics.flatMap(name => [...(exposed.get(name) ?? [])])])
  return [
    ...metrics.filter(name => !exposed.has(name)),
    ...labels.filter(label => !known.has(label)).map(label => `${label} in ${expression}`)
  ]
}

const read = (file: string) => readFileSync(file, 'utf8')
const dashboard = JSON.parse(read('deploy/grafana/console-gateway.json'))
const alerts = parse(read('deploy/prometheus/console-gateway.rules.yml')).groups.flatMap(
  ({ rules }: Tree) => rules
)

t.test('a running gateway exposes what dashboard and alerts name', async t => {
  const { panels, annotations, templating } = dashboard
  const queries = [...panels.flatMap(({ targets = [] }: Tree) => targets), ...annotations.list]
  t.ok(queries.length > 12)
  const unknown = [...queries, ...alerts].flatMap(({ expr }) => unknownIn(expr))
  t.same(unknown, [])
  t.match(templating.list, [{ name: 'datasource' }, { name: 'job' }, { name: 'instance' }])
  t.same(unknownIn('console_gateway_gone{route="x"}').length, 2, 'what is unknown is found')
})

t.test('each panel of the dashboard has a unit and a place of its own', async t => {
  const panels: readonly Tree[] = dashboard.panels
  const charts = panels.filter(({ type }) => type !== 'row')
  t.ok(charts.every(({ fieldConfig }) => fieldConfig?.defaults.unit))
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, at) => `${x + (at % w)}, ${y + Math.floor(at / w)}`)
  )
  t.equal(new Set(cells).size, cells.length, 'none is above another')
  t.ok(panels.every(({ gridPos: { x, w } }) => x + w <= 24))
})

t.test('the documents list each metric with its type and labels', async t => {
  const rows = read('docs/observability.md').matchAll(
    /^\| `(console_gateway_\w+)` \| (\w+) \|([^|]*)\|/gm
  )
  const lineOf = (name: string, type: string | undefined, labels: readonly string[]) =>
    [name, type, ...labels.toSorted()].join(' ')
  const listed = Array.from(rows, ([, name = '', type = '', labels = '']) =>
    lineOf(name, type, labels.match(/\w+/g) ?? [])
  )
  const types = new Map(
    Array.from(text.matchAll(/^# TYPE (\S+) (\S+)/gm), ([, name, type]) => [name, type])
  )
  const real = [...exposed]
    .filter(([name]) => name.startsWith('console_gateway_'))
    .map(([name, labels]) => {
      const own = [...labels].filter(label => label !== 'le')
      return lineOf(name, types.get(name), own)
    })
  t.same(listed.toSorted(), real.toSorted())
})

t.test('each metric has a series', async t => {
  const series = new Set(text.match(/^console_gateway_\w+/gm))
  const own = [...exposed.keys()].filter(name => name.startsWith('console_gateway_'))
  const without = own.filter(name => !series.has(name) && !series.has(`${name}_count`))
  t.same(without, [])
})

t.test('each alert says what to do, and links to its place in the documents', async t => {
  for (const { alert, labels, annotations } of alerts) {
    t.match(labels.severity, /^(critical|warning|info)$/, alert)
    t.same(Object.keys(annotations), ['summary', 'description', 'action', 'runbook'], alert)
    const [page = '', anchor = ''] = annotations.runbook.split('#')
    t.ok(read(page).includes(`<a id="${anchor}"></a>**${alert}**: `), page)
  }
})
