/** What the dashboard, the alerts and the documents name is exposed by a running gateway. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { type Exposed, metricsIn, scrapeUsed } from '../support/exposed.ts'

/** Labels that Prometheus adds, and those of buckets. */
const added = ['job', 'instance', 'le']

let text = ''
let exposed: Exposed = new Map()

t.test('a gateway is used and scraped', async t => {
  text = await scrapeUsed(t.after)
  exposed = metricsIn(text)
  t.ok(exposed.size > 0)
})

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

interface Alert {
  readonly alert: string
  readonly expr: string
  readonly labels: { readonly severity: string }
  readonly annotations: { readonly runbook: string }
}

interface Panel {
  readonly title: string
  readonly type: string
  readonly gridPos: {
    readonly x: number
    readonly y: number
    readonly w: number
    readonly h: number
  }
  readonly targets?: ReadonlyArray<{ readonly expr: string }>
  readonly fieldConfig?: { readonly defaults: { readonly unit: string } }
}

const dashboard = JSON.parse(readFileSync('deploy/grafana/console-gateway.json', 'utf8')) as {
  readonly panels: readonly Panel[]
  readonly annotations: { readonly list: ReadonlyArray<{ readonly expr: string }> }
  readonly templating: { readonly list: ReadonlyArray<{ readonly name: string }> }
}
const { groups } = parse(readFileSync('deploy/prometheus/console-gateway.rules.yml', 'utf8')) as {
  readonly groups: ReadonlyArray<{ readonly rules: readonly Alert[] }>
}

t.test('a running gateway exposes each metric and label that the dashboard names', async t => {
  const { panels, annotations, templating } = dashboard
  const expressions = [
    ...panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
    ...annotations.list.map(({ expr }) => expr)
  ]
  t.ok(expressions.length > 12)
  t.same(expressions.flatMap(unknownIn), [])
  t.same(
    templating.list.map(({ name }) => name),
    ['datasource', 'job', 'instance']
  )
  t.same(unknownIn('console_gateway_gone{route="x"}').length, 2, 'what is unknown is found')
})

t.test('each panel of the dashboard has a unit and a place of its own', async t => {
  const { panels } = dashboard
  const withoutUnit = panels.filter(
    ({ type, fieldConfig }) => type !== 'row' && fieldConfig?.defaults.unit === undefined
  )
  t.same(withoutUnit, [])
  const overlapping = panels.filter(({ gridPos: a }, index) =>
    panels
      .slice(0, index)
      .some(
        ({ gridPos: b }) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h
      )
  )
  t.same(overlapping, [])
  t.ok(panels.every(({ gridPos: { x, w } }) => x + w <= 24))
})

t.test('a running gateway exposes each metric and label that the alerts name', async t => {
  const expressions = groups.flatMap(({ rules }) => rules.map(({ expr }) => expr))
  t.same(expressions.flatMap(unknownIn), [])
})

t.test('the documents list each metric with its type and labels', async t => {
  const rows = readFileSync('docs/observability.md', 'utf8').matchAll(
    /^\| `(console_gateway_\w+)` \| (\w+) \|([^|]*)\|/gm
  )
  const listed = Array.from(rows, ([, name = '', type = '', labels = '']) => [
    name,
    type,
    (labels.match(/\w+/g) ?? []).toSorted().join()
  ])
  const types = new Map(
    Array.from(
      text.matchAll(/^# TYPE (\S+) (\S+)/gm),
      ([, name = '', type = '']) => [name, type] as const
    )
  )
  const real = Array.from(exposed, ([name, labels]) => [
    name,
    types.get(name),
    [...labels]
      .filter(label => label !== 'le')
      .toSorted()
      .join()
  ]).filter(([name]) => name?.startsWith('console_gateway_'))
  t.same(
    listed.toSorted((a, b) => (a[0] ?? '').localeCompare(b[0] ?? '')),
    real.toSorted((a, b) => (a[0] ?? '').localeCompare(b[0] ?? ''))
  )
})

t.test('each metric has a series', async t => {
  const series = new Set(text.match(/^console_gateway_\w+/gm))
  const empty = [...exposed.keys()].filter(
    name =>
      name.startsWith('console_gateway_') && ![name, `${name}_count`].some(each => series.has(each))
  )
  t.same(empty, [])
})

t.test('each alert says what to do, and links to its place in the documents', async t => {
  for (const { alert, labels, annotations } of groups.flatMap(({ rules }) => rules)) {
    t.match(labels.severity, /^(critical|warning|info)$/, alert)
    t.same(Object.keys(annotations), ['summary', 'description', 'action', 'runbook'], alert)
    const [page = '', anchor = ''] = annotations.runbook.split('#')
    t.ok(readFileSync(page, 'utf8').includes(`<a id="${anchor}"></a>**${alert}**: `), page)
  }
})
