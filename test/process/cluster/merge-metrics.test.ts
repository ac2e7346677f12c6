import t from 'tap'
import { mergeTexts } from '../../../src/process/cluster/merge-metrics.ts'

t.test('the metrics of several processes stand once each, with the series of all', async t => {
  const one =
    '# HELP a What a is.\n# TYPE a counter\na 1\n# HELP b What b is.\n# TYPE b histogram\nb_bucket{le="1",of="{x}"} 2\nb_sum{} 3\n'
  const two =
    '# HELP b What b is.\n# TYPE b histogram\nb_bucket{le="1",of="{x}"} 5\n# HELP c What c is.\n# TYPE c gauge\nc 7\n# EOF\n'
  t.equal(
    mergeTexts([
      { labels: '', text: '# HELP a What a is.\n# TYPE a counter\na 9\n' },
      { labels: 'worker="1"', text: one },
      { labels: 'worker="2"', text: two }
    ]),
    `# HELP a What a is.
# TYPE a counter
a 9
a{worker="1"} 1
# HELP b What b is.
# TYPE b histogram
b_bucket{worker="1",le="1",of="{x}"} 2
b_sum{worker="1"} 3
b_bucket{worker="2",le="1",of="{x}"} 5
# HELP c What c is.
# TYPE c gauge
c{worker="2"} 7
`
  )
})

t.test('OpenMetrics of several processes has one end, and keeps examples', async t => {
  const text =
    '# HELP d D.\n# TYPE d histogram\nd_bucket{le="1"} 2 # {trace_id="{abc}"} 0.5 1\nd_count 2\n# EOF\n'
  t.equal(
    mergeTexts(
      [
        { labels: '', text: '# HELP c C.\n# TYPE c counter\nc_total 9\n# EOF\n' },
        { labels: 'worker="1"', text }
      ],
      'openmetrics'
    ),
    `# HELP c C.
# TYPE c counter
c_total 9
# HELP d D.
# TYPE d histogram
d_bucket{worker="1",le="1"} 2 # {trace_id="{abc}"} 0.5 1
d_count{worker="1"} 2
# EOF
`
  )
})
