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
  picked:
    - open: code-data
    - each:
        - pick: [a]
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

t.test('a file may begin with a byte order mark, as Windows writes it', async t => {
  const folder = folderFor(t.after, 'http://b.internal')
  const text = `\ufeff${JSON.stringify(answer)}`
  for (const input of [Buffer.from(text), Buffer.from(text, 'utf16le')]) {
    const { code, out, err } = await run(['shape', 'r', '--input', '-', '-c', folder], { input })
    t.equal(code, 0, err)
    t.match(out, '"total": 1')
  }
})

t.test('what a terminal would obey in names, values and messages is shown', async t => {
  const folder = folderFor(t.after, 'http://b.internal')
  const title = '\u001b]0;owned\u0007'
  const shown = async (input: object, ...words: string[]) => {
    const { out, err } = await run(['shape', ...words, '--input', '-', '-c', folder], {
      input: JSON.stringify(input)
    })
    t.notMatch(out + err, /[\u0000-\u0009\u000b-\u001f\u0080-\u009f]/, words.join(' '))
    return out
  }
  const rows = { code: 0, data: [{ a: '\u009b2J', [title]: 2, secret: 1 }] }
  t.match(await shown(rows, 'picked'), '- 0.\\u001b]0;owned\\u0007')
  t.match(await shown(rows, 'r'), '+ 0.b: "\\u009b2J"')
  t.match(await shown({ code: 404, msg: title }, 'r'), 'a failure: 404, \\u001b]0;owned')
  t.match(JSON.parse(await shown(rows, 'r', '--json')), { before: rows })
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

t.test('every --header is sent, and one that cannot be sent is refused before', async t => {
  const backend = await testUpstream(t.after, json(200, answer))
  const folder = folderFor(t.after, backend.url)
  const ask = (...headers: string[]) =>
    run([
      ...['shape', 'r', '--live', '-c', folder],
      ...headers.flatMap(header => ['--header', header])
    ])
  t.equal((await ask('Authorization: Bearer x', 'tenant-id:1')).code, 0)
  t.match(backend.seen[0]?.headers, { 'authorization': 'Bearer x', 'tenant-id': '1' })
  for (const [headers, problem] of [
    [['Bearer of-secret'], '--header takes a name and a value, such as "tenant-id: 1".'],
    [['authorization:'], '--header: the value of "authorization" is not printable ASCII'],
    [['tenant id: of-secret'], '--header takes a name and a value'],
    [['name: Müller'], '--header: the value of "name" is not printable ASCII'],
    [['a: 1', 'A: 2'], '--header: "a" has two values.'],
    [['Connection: close'], '--header: "connection" belongs to the connection']
  ] as const) {
    const { code, err } = await ask(...headers)
    t.equal(code, 2, headers.join())
    t.match(err, problem)
    t.notMatch(err, 'of-secret', 'a secret is not repeated')
  }
  t.equal(backend.seen.length, 1)
})

t.test('what makes no sense is told, without a stack', async t => {
  const folder = folderFor(t.after, 'http://127.0.0.1:9')
  for (const [words, code, message] of [
    [['x', '--live'], 1, 'There is no route and no shape "x". Routes: r, plain.'],
    [['plain', '--live'], 1, 'The route "plain" has no shape'],
    [['r', '--live'], 1, 'http://127.0.0.1:9 does not answer'],
    [['r', '--input', '/nowhere'], 1, '/nowhere cannot be read (ENOENT).'],
    [
      ['r', '--input', '-'],
      1,
      /^Standard input: the response is not valid JSON: it breaks off at position 1/
    ]
  ] as const) {
    const ran = await run(['shape', ...words, '-c', folder], { input: '{' })
    t.equal(ran.code, code, words.join(' '))
    t.match(ran.err, message)
    t.notMatch(ran.err, /^ +at /m)
  }
})
