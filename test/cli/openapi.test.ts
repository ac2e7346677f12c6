import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { run, running, runProcess } from '../support/command.ts'
import { textFolder } from '../support/config-files.ts'

t.test('openapi is written to standard output or a file, from config alone', async t => {
  const folder = textFolder(t.after, {
    'gateway.yaml': 'server: { hosts: [console.example.com], trustedProxies: [10.0.0.0/8] }'
  })
  const { code, out } = await run(['openapi', '-c', folder])
  t.equal(code, 0)
  t.match(JSON.parse(out), {
    openapi: '3.1.0',
    paths: { '/api/account/profile': { get: { operationId: 'getProfile' } } }
  })
  const output = join(folder, 'openapi.json')
  t.same(await run(['openapi', '-c', folder, '-o', output]), { code: 0, out: '', err: '' })
  t.equal(readFileSync(output, 'utf8'), out)
})

t.test('names of a contract that a terminal would obey are written as escapes', async t => {
  const name = '\u009b2J\u001b]0;owned\u0007'
  const schema = { type: 'object', description: `Of ${name}.`, properties: { [name]: {} } }
  const folder = textFolder(t.after, {
    'gateway.yaml': 'server: { hosts: [console.example.com], trustedProxies: [10.0.0.0/8] }',
    'routes.yaml': JSON.stringify({
      upstreams: { b: { url: 'http://b.internal' } },
      routes: { r: { path: '/api/r', upstream: 'b', contract: { schema } } }
    })
  })
  const { code, out } = await run(['openapi', '-c', folder])
  t.equal(code, 0)
  t.match(out, '\\u009b2J\\u001b]0;owned\\u0007')
  t.notMatch(out, /[\u0000-\u0009\u000b-\u001f\u0080-\u009f]/)
})

t.test('a pipe is written to, and a failure is said', async t => {
  const folder = textFolder(t.after, {
    'gateway.yaml': 'server: { hosts: [console.example.com], trustedProxies: [10.0.0.0/8] }'
  })
  const words = ['openapi', '-c', folder, '-o']
  const piped = `${process.execPath} src/launch.js ${words.join(' ')} /dev/stdout | cat`
  await running(t.after, 'sh', ['-c', piped]).says('"openapi": "3.1.0"')
  const output = join(folder, 'openapi.json')
  const full = await runProcess([...words, output], { maxFileBlocks: 1 })
  t.match(full, { code: 1, err: `${output} cannot be written (EFBIG).\n` })
})
