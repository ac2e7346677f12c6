/**
 * A gateway with the preset of a console, users of a file, and a back-end that speaks the neutral
 * forms, so that what a console shows is its preset's doing alone.
 */
import type { Test } from 'tap'
import { testGateway } from '../support/gateway.ts'
import { password } from '../support/sign-in.ts'
import { json, testUpstream } from '../support/upstream.ts'
import { type ConsoleSpec, pathOf } from './console.ts'

export const alice = { username: 'alice', password }
export const items = Array.from({ length: 25 }, (_, index) => ({ id: index + 1 }))

/** `{ rows, total }` by page and size, and a refusal of an empty title. */
function answerOf(method: string, url: string, body: string) {
  if (method === 'POST') {
    if (!body.includes('"title":""')) return json(200, { id: 26 })
    return json(422, { message: 'No title.', errors: { title: ['Needed.'] } })
  }
  const { searchParams } = new URL(url, 'http://back-end')
  // Go writes a list that nobody made as null.
  if (searchParams.get('title') === 'nothing') return json(200, { rows: null, total: 0 })
  const [page, size] = [Number(searchParams.get('p')), Number(searchParams.get('s'))]
  return json(200, { rows: items.slice((page - 1) * size, page * size), total: items.length })
}

/** @param own further keys of gateway.yaml */
export async function startPlain(t: Test, { name, calls }: ConsoleSpec, own: object = {}) {
  const backend = await testUpstream(t.after, (request, response, seen) =>
    answerOf(seen.method, seen.url, seen.body.toString())(request, response, seen)
  )
  const errors = { message: ['message'], fields: { at: ['errors'] } }
  const upstream = { url: backend.url, paging: { page: 'p', size: 's' }, errors }
  const list = { path: pathOf(calls.list), methods: ['GET'], upstream: 'backend', shape: 'list' }
  const save = { ...list, path: pathOf(calls.save), methods: ['POST'], shape: 'record' }
  const gateway = await testGateway(t.after, {
    gateway: { extends: name, ...own },
    routes: {
      upstreams: { backend: upstream },
      permissions: { admin: ['*'], user: ['read'] },
      routes: { list, save }
    }
  })
  return { backend, gateway }
}
