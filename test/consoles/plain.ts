/** A gateway with a console’s preset alone: users of a file, a back-end of neutral forms. */
import type { Test } from 'tap'
import { testGateway } from '../support/gateway.ts'
import { password } from '../support/sign-in.ts'
import { json, testUpstream } from '../support/upstream.ts'
import { type ConsoleSpec, pathOf } from './console.ts'
import { notices } from './server.ts'

export const alice = { username: 'alice', password }

/** `{ rows, total }` by page, size and title, and a refusal of an empty title. */
function answerOf(method: string, url: string, body: string) {
  if (method === 'POST') {
    if (!body.includes('"title":""')) return json(200, { id: 26 })
    return json(422, { message: 'No title.', errors: { title: ['Needed.'] } })
  }
  const { searchParams } = new URL(url, 'http://back-end')
  const found = notices.filter(({ title }) => title.includes(searchParams.get('title') ?? ''))
  const [page, size] = [Number(searchParams.get('p')), Number(searchParams.get('s'))]
  // Go writes a list that nobody made as null.
  const rows = found.length === 0 ? null : found.slice((page - 1) * size, page * size)
  return json(200, { rows, total: found.length })
}

/** @param own further keys of gateway.yaml */
export async function startPlain(
  t: Test,
  { name, calls }: ConsoleSpec,
  own: object = {},
  environment?: Record<string, string>
) {
  const backend = await testUpstream(t.after, (request, response, seen) =>
    answerOf(seen.method, seen.url, seen.body.toString())(request, response, seen)
  )
  const errors = { message: ['message'], fields: { at: ['errors'] } }
  const upstream = { url: backend.url, paging: { page: 'p', size: 's' }, errors }
  const list = { path: pathOf(calls.list), methods: ['GET'], upstream: 'backend', shape: 'list' }
  const save = { ...list, path: pathOf(calls.save), methods: ['POST'], shape: 'record' }
  const permissions = { admin: ['*'], user: ['read'] }
  const routes = { upstreams: { backend: upstream }, permissions, routes: { list, save } }
  const files = { gateway: { extends: name, ...own }, routes }
  const gateway = await testGateway(t.after, files, environment)
  return { backend, gateway }
}
