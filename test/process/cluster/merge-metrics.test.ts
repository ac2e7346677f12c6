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
