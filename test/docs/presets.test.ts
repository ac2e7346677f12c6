/** With the preset of every console, and in every dialect, the document is true of the gateway. */
import { Validator } from '@seriousme/openapi-schema-validator'
import { readdirSync } from 'node:fs'
import { basename } from 'node:path'
import t from 'tap'
import { documentOf } from '../support/document.ts'
import { password, testGateway } from '../support/gateway.ts'
import { json, testUpstream } from '../support/upstream.ts'

type Tree = Record<string, any>

const gateways: Record<string, Tree> = {
  'problem': { envelope: { dialect: 'problem' } },
  'none': { envelope: { dialect: 'none' } },
  'members beside the code': {
    envelope: { dialect: 'custom', custom: { members: { data: false } } }
  }
}
for (const file of readdirSync('presets/console')) {
  gateways[file] = { extends: basename(file, '.yaml') }
}

const mixed = { json: { who: '{name}', end: '{idleEndsAt}' }, byRole: { admin: { who: null } } }
const routes = {
  endpoints: { check: { path: '/api/check' } },
  shapes: { list: [{ unwrap: 'list' }, { wrap: 'envelope' }] },
  routes: {
    list: { shape: 'list' },
    written: { answer: { json: [1, '{name}'] } },
    mixed: { answer: mixed },
    flat: { answer: { ...mixed, inEnvelope: 'flat' } }
  }
}

for (const [name, gateway] of Object.entries(gateways)) {
  t.test(`the document is true: ${name}`, async t => {
    const { url } = await testUpstream(t.after, json(200, { code: 0, list: [{ id: 1 }] }))
    const running = await testGateway(t.after, { gateway, backend: url, routes })
    const { document, call } = await documentOf(running)
    t.same(await new Validator().validate(structuredClone(document)), { valid: true })
    const operations = Object.entries<Tree>(document['paths']).flatMap(([path, item]) =>
      Object.entries<Tree>(item).map(([method, operation]) => ({ path, method, ...operation }))
    ) as Array<{ path: string; method: string } & Tree>
    const login = operations.find(({ operationId }) => operationId === 'postLogin')
    const { path: loginPath, requestBody } = login as Tree
    const [user = '', secret = ''] = requestBody.content['application/json'].schema.required
    const bodyOf = (username: string) => ({ [user]: username, [secret]: password })
    const signIn = async (username: string) => {
      const { headers, fault } = await call(loginPath, { json: bodyOf(username) })
      t.equal(fault, undefined, `sign-in of ${username}`)
      const cookies = headers.getSetCookie().map(each => each.split(';', 1)[0] ?? '')
      return cookies.find(each => each.includes('console_sid=')) ?? 'none=1'
    }
    for (const username of [undefined, 'alice', 'bob']) {
      const cookie = username && (await signIn(username))
      for (const { path, method, operationId } of operations) {
        if (/Login|Logout|Close/.test(operationId)) continue
        const options = { ...(method === 'post' && { json: {} }), ...(cookie && { cookie }) }
        const { status, fault } = await call(path, options)
        t.equal(fault, undefined, `${method} ${path} of ${username}: ${status}`)
        if (username) t.ok(status < 300, `${method} ${path} of ${username}: ${status}`)
      }
    }
  })
}
