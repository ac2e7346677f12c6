import { gzipSync } from 'node:zlib'
import t from 'tap'
import { type BodyMapping, mapBody } from '../../src/proxy/body-mapping.ts'

type Headers = Record<string, string | string[]>

const unchanged: BodyMapping = { maxBytes: 1000, shape: body => body }
const json = { 'content-type': 'application/json; charset=utf-8' }
const form = { 'content-type': 'application/x-www-form-urlencoded' }

async function mapped(body: string | Buffer, headers: Headers, more: Partial<BodyMapping> = {}) {
  const sent: Headers = { 'content-length': '1', ...headers }
  const text = await mapBody(Buffer.from(body as string), sent, { ...unchanged, ...more })
  return { text, headers: sent }
}

t.test('a JSON body is shaped, and its headers are true of the new one', async t => {
  const shape = (body: unknown) => ({ title: (body as { name: string }).name })
  const { text, headers } = await mapped('{"name":"ä"}', json, { shape })
  t.equal(text, '{"title":"ä"}')
  t.same(headers, { 'content-type': 'application/json', 'content-length': '14' })
})

t.test('numbers that a double cannot hold keep their digits', async t => {
  const long = '{"id":12345678901234567890,"n":1.10}'
  t.match((await mapped(long, json)).text, /12345678901234567890/)
  t.equal(
    (await mapped('{"id":12345678901234567890}', json, { as: 'form' })).text,
    'id=12345678901234567890'
  )
})

t.test('JSON becomes a form and a form JSON', async t => {
  const body = '{"a":"b c&","n":1,"yes":true,"none":null,"list":[1,"x"]}'
  const asForm = await mapped(body, json, { as: 'form' })
  t.equal(asForm.text, 'a=b+c%26&n=1&yes=true&list=1&list=x')
  t.equal(asForm.headers['content-type'], 'application/x-www-form-urlencoded')
  const asJson = await mapped('a=b+c%26&x=1&x=2&__proto__=y', form, { as: 'json' })
  t.equal(asJson.text, '{"a":"b c&","x":["1","2"],"__proto__":"y"}')
  t.equal((await mapped('a=1&b=%C3%A4', form)).text, 'a=1&b=%C3%A4')
})

t.test('a packed body is unpacked, up to the bound', async t => {
  const packed = { ...json, 'content-encoding': 'gzip' }
  const { text, headers } = await mapped(gzipSync('{"a":1}'), packed)
  t.equal(text, '{"a":1}')
  t.equal(headers['content-encoding'], undefined)
  const bomb = gzipSync(`"${'x'.repeat(100_000)}"`)
  await t.rejects(mapped(bomb, packed), { code: 'request.too-large' })
})

t.test('what cannot be read or written is refused as the client’s fault', async t => {
  await t.rejects(mapped('{"a":', json), { code: 'request.malformed' })
  await t.rejects(mapped('x', { 'content-type': 'text/plain' }), { code: 'request.type' })
  await t.rejects(mapped('x', {}), { code: 'request.type' })
  await t.rejects(mapped('x', { 'content-type': 'multipart/form-data; boundary=x' }), {
    code: 'request.type'
  })
  for (const body of ['[1]', '"a"', '1', '{"a":{"b":1}}', '{"a":[[1]]}']) {
    await t.rejects(mapped(body, json, { as: 'form' }), { code: 'request.malformed' }, body)
  }
})

t.test('a shape may be a promise, and its nothing is null', async t => {
  t.equal((await mapped('{}', json, { shape: async () => 7 })).text, '7')
  t.equal((await mapped('{}', json, { shape: () => undefined })).text, 'null')
})
