import t from 'tap'
import { createMetrics } from '../../src/observability/metrics.ts'
import { formatFor } from '../../src/observability/metrics-text.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'

/** A metric of each kind, with a value that has an example in its bucket. */
function exampleMetrics() {
  const metrics = createMetrics()
  metrics.counter('c_total', 'C.', ['a']).with('x').inc(2)
  metrics.gauge('g', 'G.').with().set(-1)
  metrics.read('later', 'L.', [], async () => [[[], 7]])
  const durations = metrics.histogram('d_seconds', 'D.', ['a'], [0.1, 1]).with('y')
  durations.observe(0.05)
  durations.observe(0.5, traceId)
  durations.observe(9, traceId)
  return metrics
}

t.test('the Accept header chooses the format; OpenMetrics only for those who name it', async t => {
  const prometheus2 =
    'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,' +
    'text/plain;version=0.0.4;q=0.5,*/*;q=0.1'
  const prometheus3 =
    'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,' +
    'text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2'
  for (const [accept, format] of [
    [prometheus2, 'openmetrics'],
    [prometheus3, 'openmetrics'],
    ['application/openmetrics-text', 'openmetrics'],
    ['APPLICATION/OPENMETRICS-TEXT; version=1.0.0; charset=utf-8', 'openmetrics'],
    ['application/openmetrics-text;q=0.3,text/plain;q=0.5', 'prometheus'],
    ['application/openmetrics-text;q=0', 'prometheus'],
    ['application/openmetrics-text;q=high', 'prometheus'],
    ['application/openmetrics-text;version=2.0.0', 'prometheus'],
    ['text/plain', 'prometheus'],
    ['*/*', 'prometheus'],
    ['text/html,application/xhtml+xml', 'prometheus'],
    ['', 'prometheus'],
    [undefined, 'prometheus']
  ] as const) {
    t.equal(formatFor(accept), format, accept ?? 'without a header')
  }
})

t.test('OpenMetrics has examples with trace ids, counters by their family, and an end', async t => {
  const { type, body } = await exampleMetrics().text('openmetrics')
  t.equal(type, 'application/openmetrics-text; version=1.0.0; charset=utf-8')
  t.match(body, /# TYPE c counter\nc_total\{a="x"\} 2\n/)
  t.match(body, /# TYPE later gauge\nlater 7\n/)
  const example = `# {trace_id="${traceId}"}`
  t.match(body, '\nd_seconds_bucket{a="y",le="0.1"} 1\n', 'a bucket without a sampled trace')
  t.match(body, `\nd_seconds_bucket{a="y",le="1"} 2 ${example} 0.5 `)
  t.match(body, `\nd_seconds_bucket{a="y",le="+Inf"} 3 ${example} 9 `)
  t.match(body, /\n# EOF\n$/)
  t.notMatch(body, /\n\n/, 'no empty line')
})

t.test('the older format stays as it is, also after OpenMetrics was asked for', async t => {
  const metrics = exampleMetrics()
  const before = await metrics.text()
  await metrics.text('openmetrics')
  const { type, body } = await metrics.text()
  const namesOf = (text: string) => text.match(/^# TYPE .*$/gm)
  t.equal(type, 'text/plain; version=0.0.4; charset=utf-8')
  t.same(namesOf(body), namesOf(before.body))
  t.match(body, /# TYPE c_total counter\nc_total\{a="x"\} 2\n/)
  t.notMatch(body, /trace_id|# EOF/)
})

t.test('beyond the bound of series, what is new shares one, and all others go on', async t => {
  const metrics = createMetrics()
  const counter = metrics.counter('example_total', 'An example.', ['code'])
  for (let code = 0; code < 50_000; code++) counter.with(`c${code}`).inc()
  for (const code of ['c7', 'new', 'newer', 'c7']) counter.with(code).inc()
  const { body } = await metrics.text()
  t.match(body, '\nexample_total{code="c7"} 3\n')
  t.match(body, '\nexample_total{code="other"} 2\n')
  t.notMatch(body, 'code="new')
})
