import t from 'tap'
import { run } from '../support/command.ts'
import { textFolder } from '../support/config-files.ts'
import { json, testUpstream } from '../support/upstream.ts'

const answer = { code: 0, data: [{ a: 1, secret: 'x' }] }
const folderFor = (cleanUp: (undo: () => unknown) => void, url: string) =>
  textFolder(cleanUp, {
    'gateway.yaml': 'server: { hosts: [console.example.com], trustedProxies: [10.0.0.0/8] }',
    'routes.yaml': `
upstreams: { b: { url: "${url}" } }
routes:
  r: { path: /api/r, upstream: b, rewrite: /list, shape: s }
  plain: { path: /api/plain, upstream: b }
shapes:
  s:
    - open: code-data
    - each:
        - rename: { a: b }
        - drop: [secret]
    - wrap: list
`
  })

t.test('before, after and what each operation did, from a file or standard input', async t => {
  const folder = folderFor(t.after, 'http://b.internal')
  const { code, out } = await run(['shape', 'r', '--input', '-', '-c', folder], {
    input: JSON.stringify(answer)
  })
  t.equal(code, 0)
  t.match(
    out,
    /^before\n[^]*1\. open: code-data\n {3}~ \(all\): [^]*2\. each:\n[^]*rename:[^]*- 0\.a\n {3}\+ 0\.b: 1\n[^]*3\. each:\n[^]*- 0\.secret\n[^]*4\. wrap: list\n[^]*after\n/
  )
  t.match(JSON.parse(out.slice(out.indexOf('\nafter\n') + 7)), {
    success: true,
    data: [{ b: 1 }],
    total: 1
  })
  const asJson = await run(['shape', 's', '--input', '-', '--json', '-c', folder], {
    input: JSON.stringify(answer)
  })
  t.match(JSON.parse(asJson.out), {
    before: answer,
    operations: [{ operation: { open: 'code-data' } }, {}, {}, {}],
    after: { data: [{ b: 1 }] }
  })
})

t.test('ids beyond 2^53 keep their digits, from a file and from the upstream', async t => {
  const long = '{"code":0,"data":[{"a":1234567890123456789}]}'
  const backend = await testUpstream(t.after, (_request, response) => {
    response.end(long)
  })
  const folder = folderFor(t.after, backend.url)
  for (const from of [['--input', '-'], ['--live']]) {
    const { out } = await run(['shape', 'r', ...from, '-c', folder], { input: long })
    t.match(out, /\nafter\n[^]*"b": 1234567890123456789\n/, String(from[0]))
  }
})

t.test('an answer that tells a failure ends there', async t => {
  const { code, out } = await run(
    ['shape', 'r', '--input', '-', '-c', folderFor(t.after, 'http://b.internal')],
    { input: '{"code": 404, "msg": "gone"}' }
  )
  t.equal(code, 1)
  t.match(out, '1. open: code-data\n   a failure: 404, gone\n')
  t.notMatch(out, 'after')
})

t.test('--live asks the upstream, with a header field of one’s own', async t => {
  const backend = await testUpstream(t.after, json(200, answer))
  const { code, out, err } = await run([
    'shape',
    'r',
    '--live',
    '--header',
    'authorization: Bearer x',
    '-c',
    folderFor(t.after, backend.url)
  ])
  t.equal(code, 0)
  t.match(err, `200 from ${backend.url}`)
  t.match(out, '"total": 1')
  t.match(backend.seen[0], { url: '/list', headers: { authorization: 'Bearer x' } })
})

t.test('what makes no sense is told, without a stack', async t => {
  const folder = folderFor(t.after, 'http://127.0.0.1:9')
  for (const [words, code, message] of [
    [['r'], 2, 'Name a route, and either --input or --live.'],
    [['x', '--live'], 1, 'There is no route and no shape "x". Routes: r, plain.'],
    [['plain', '--live'], 1, 'The route "plain" has no shape'],
    [['r', '--live'], 1, 'http://127.0.0.1:9 does not answer'],
    [['r', '--input', '/nowhere'], 1, '/nowhere cannot be read (ENOENT).'],
    [['r', '--input', '-'], 1, 'Not valid JSON.']
  ] as const) {
    const ran = await run(['shape', ...words, '-c', folder], { input: '{' })
    t.equal(ran.code, code, words.join(' '))
    t.match(ran.err, message)
    t.notMatch(ran.err, /^ +at /m)
  }
})
