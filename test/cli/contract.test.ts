import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { CommandError, type Invocation, UsageError } from '../../src/cli/command.ts'
import { contract } from '../../src/cli/contract.ts'
import { run } from '../support/command.ts'
import { textFolder } from '../support/config-files.ts'
import { json, testUpstream } from '../support/upstream.ts'

const item = { type: 'object', required: ['id'], properties: { id: { type: 'string' } } }
/** A back-end may choose such names, and `learn` writes them into the contract. */
const oddName = '\u009b2J\u001b]0;owned\u0007'
const folderFor = (cleanUp: (undo: () => unknown) => void, url = 'http://b.internal') =>
  textFolder(cleanUp, {
    'gateway.yaml': 'server: { hosts: [console.example.com], trustedProxies: [10.0.0.0/8] }',
    'routes.yaml': JSON.stringify({
      upstreams: { b: { url } },
      endpoints: { profile: { from: 'upstream', upstream: 'b' } },
      routes: {
        r: {
          path: '/api/r',
          upstream: 'b',
          rewrite: '/list',
          shape: 's',
          contract: { schema: { type: 'array', items: item } }
        },
        odd: {
          path: '/api/odd',
          upstream: 'b',
          shape: 's',
          contract: { schema: { type: 'array', items: { required: [oddName] } } }
        },
        plain: { path: '/api/plain', upstream: 'b' },
        parted: { path: '/api/parted', shape: 's', parts: { p: { upstream: 'b', rewrite: '/p' } } }
      },
      shapes: { s: [{ open: 'code-data' }, { wrap: 'list' }] }
    }),
    'a.json': '{"code": 0, "data": [{"id": "1", "at": "2026-11-21T05:30:00Z"}]}',
    'b.json': '{"code": 0, "data": [{"id": "2", "note": null}]}',
    'answer.json': '{"success": true, "data": [{"id": "3"}], "total": 1}',
    'user.json': '{"phone": "1"}',
    'failure.json': '{"code": 404, "msg": "gone"}',
    'escapes.json': '{"code": 0, "data": [{"id": "1", "\\u009b2J\\u001b]0;owned\\u0007": 1}]}',
    'refused.json': '{"code": 404, "msg": "\\u001b]0;owned\\u0007"}',
    'typings.d.ts':
      'declare namespace API {\n  /** A notice. */\n  type Notice = { id: string; read?: boolean; pair: [string, number?]; kind: Kind };\n  type Kind = "a" | "b";\n}\n'
  })

/** In this process; what it writes is read from the file that it names. */
const inProcess = async (folder: string, rest: readonly string[], values: Invocation['values']) => {
  const output = join(folder, 'out.json')
  const code = await contract({
    config: folder,
    gateway: { folder, io: process },
    io: process,
    json: false,
    rest,
    values: { ...values, output }
  })
  return { code, schema: JSON.parse(readFileSync(output, 'utf8')) }
}

t.test('learn merges answers and writes the schema of what the console gets', async t => {
  const folder = folderFor(t.after)
  const { code, schema } = await inProcess(folder, ['learn', 'r'], {
    input: [join(folder, 'a.json'), join(folder, 'b.json')]
  })
  t.equal(code, 0)
  t.same(schema, {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    description: 'The responses of the route r, learned from 2 responses.',
    type: 'array',
    items: {
      type: 'object',
      required: ['id'],
      properties: {
        id: { type: 'string' },
        at: { type: 'string', format: 'date-time' },
        note: { type: 'null' }
      }
    }
  })
})

t.test(
  'several files may follow --input, as a shell writes them, and standard input is one',
  async t => {
    const folder = folderFor(t.after)
    const { code, out } = await run(
      ['contract', 'learn', 'r', '-c', folder, '--input', '-', join(folder, 'b.json')],
      { input: readFileSync(join(folder, 'a.json')) }
    )
    t.equal(code, 0)
    t.match(JSON.parse(out), { description: /2 responses/, items: { required: ['id'] } })
  }
)

t.test('learn asks the upstream as often as told, and learns nothing from a failure', async t => {
  let asked = 0
  const backend = await testUpstream(t.after, (request, response, seen) => {
    if (request.headers['authorization'] === undefined) {
      return json(401, {})(request, response, seen)
    }
    json(200, { code: 0, data: ++asked % 2 === 0 ? [{ id: 'a', n: 1 }] : [{ id: 'b' }] })(
      request,
      response,
      seen
    )
  })
  const folder = folderFor(t.after, backend.url)
  const { schema } = await inProcess(folder, ['learn', 'r'], {
    live: true,
    samples: '3',
    header: ['authorization: Bearer x']
  })
  t.same(schema.items, {
    type: 'object',
    required: ['id'],
    properties: { id: { type: 'string' }, n: { type: 'number' } }
  })
  t.equal(asked, 3)
  await t.rejects(inProcess(folder, ['learn', 'r'], { live: true }), {
    message: /The upstream answered 401/
  })
})

t.test(
  'answers as the console gets them do as well, and a route that is made of parts needs them',
  async t => {
    const folder = folderFor(t.after)
    const input = [join(folder, 'answer.json')]
    t.match(await inProcess(folder, ['learn', 'parted'], { input, shaped: true }), {
      schema: { type: 'array', items: { required: ['id'] } }
    })
    await t.rejects(inProcess(folder, ['learn', 'parted'], { input }), {
      message: /made of parts: .* --shaped/
    })
    await t.rejects(
      inProcess(folder, ['learn', 'r'], { input: [join(folder, 'user.json')], shaped: true }),
      { message: /is not a response of the gateway: it has no member "data"/ }
    )
  }
)

t.test('learn knows the current user as the console gets it', async t => {
  const folder = folderFor(t.after)
  const { schema } = await inProcess(folder, ['learn', 'profile'], {
    input: [join(folder, 'user.json')]
  })
  t.same(schema.required, ['phone', 'id', 'userid', 'username', 'name', 'avatar', 'access', 'role'])
})

t.test(
  'the profile is described as the gateway checks it: in its place of the envelope',
  async t => {
    const members = (
      cleanUp: (undo: () => unknown) => void,
      profile: object,
      options: object = {}
    ) => {
      const folder = textFolder(cleanUp, {
        'routes.yaml': JSON.stringify({
          upstreams: { b: { url: 'http://b.internal' } },
          endpoints: { profile: { from: 'upstream', upstream: 'b', ...profile } }
        }),
        'user.json': '{"phone": "1"}',
        'answer.json': '{"ok": true, "code": 0, "phone": "1"}'
      })
      const { input = 'user.json', ...others } = options as { input?: string }
      const learn = inProcess(folder, ['learn', 'profile'], {
        input: [join(folder, input)],
        ...others
      })
      return learn.then(({ schema }) => Object.keys(schema.properties).toSorted().join(' '))
    }
    const user = 'access avatar id name phone role userid username'
    const flat = `access avatar code id message name ok phone role success userid username`
    t.equal(await members(t.after, {}), user)
    t.equal(await members(t.after, { inEnvelope: 'flat' }), flat)
    const shaped = { input: 'answer.json', shaped: true }
    t.equal(await members(t.after, { inEnvelope: 'flat' }, shaped), 'code ok phone')
    const json = { tel: '{profile.phone}', issued: '{issuedAt}' }
    t.equal(await members(t.after, { answer: { json } }), 'issued tel')
    const placed = { answer: { json, inEnvelope: 'flat' } }
    t.equal(await members(t.after, placed), 'code issued message ok success tel')
  }
)

t.test(
  'check says how answers differ from the contract, and fails where it refuses one',
  async t => {
    const folder = folderFor(t.after)
    const check = (data: unknown) =>
      run(['contract', 'check', 'r', '--input', '-', '-c', folder], {
        input: JSON.stringify({ code: 0, data })
      })
    t.same(await check([{ id: '1', fresh: 1 }]), {
      code: 0,
      out: 'new      [].fresh\nkept, except for the members above\n',
      err: ''
    })
    t.same(await check([{ fresh: 1 }, { id: 2 }]), {
      code: 1,
      out: 'missing  [].id\nnew      [].fresh\nretyped  [].id\n1 of 1 refused\n',
      err: ''
    })
  }
)

t.test('what a terminal would obey in names and messages is shown', async t => {
  const folder = folderFor(t.after)
  for (const [words, message] of [
    [['learn', 'r', '--input', 'escapes.json'], '"\\u009b2J\\u001b]0;owned\\u0007": {'],
    [['learn', 'r', '--input', 'refused.json'], 'is a failure: 404, \\u001b]0;owned\\u0007'],
    [['check', 'odd', '--input', 'a.json'], 'missing  [].\\u009b2J\\u001b]0;owned\\u0007'],
    [['check', 'odd', '--input', 'a.json', '--json'], '"[].\\u009b2J\\u001b]0;owned\\u0007"']
  ] as const) {
    const files = words.map(word => (word.endsWith('.json') ? join(folder, word) : word))
    const { out, err } = await run(['contract', ...files, '-c', folder])
    t.match(out + err, message, words.join(' '))
    t.notMatch(out + err, /[\u0000-\u0009\u000b-\u001f\u0080-\u009f]/, words.join(' '))
  }
})

t.test('from-type turns a type of the console into a schema that a contract can name', async t => {
  const folder = folderFor(t.after)
  const { schema } = await inProcess(
    folder,
    ['from-type', join(folder, 'typings.d.ts'), 'API.Notice'],
    {}
  )
  t.same(schema, {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: {
      id: { type: 'string' },
      read: { type: 'boolean' },
      pair: {
        type: 'array',
        minItems: 1,
        maxItems: 2,
        prefixItems: [{ type: 'string' }, { type: 'number' }]
      },
      kind: { $ref: '#/definitions/API.Kind' }
    },
    required: ['id', 'pair', 'kind'],
    description: 'A notice.',
    definitions: { 'API.Kind': { type: 'string', enum: ['a', 'b'] } }
  })
  await t.rejects(inProcess(folder, ['from-type', join(folder, 'typings.d.ts'), 'API.None'], {}), {
    constructor: CommandError,
    message: /No root type "API.None" found/
  })
})

t.test('what makes no sense is told', async t => {
  const folder = folderFor(t.after)
  const failure = join(folder, 'failure.json')
  for (const [rest, values, kind, message] of [
    [
      ['learn', 'r'],
      { live: true, samples: '0' },
      UsageError,
      '--samples is a number from 1 to 1000.'
    ],
    [['learn', 'x'], { live: true }, CommandError, 'There is no route and no shape "x"'],
    [['learn', 'r'], { input: [failure] }, CommandError, /failure\.json is a failure: 404, gone/],
    [
      ['check', 'plain'],
      { input: [failure] },
      CommandError,
      'The route "plain" has no contract. Routes with a contract: r, odd.'
    ],
    [
      ['check', 'constructor'],
      { input: [failure] },
      CommandError,
      'The route "constructor" has no contract. Routes with a contract: r, odd.'
    ]
  ] as const) {
    await t.rejects(inProcess(folder, rest, values), { constructor: kind, message })
  }
})
