import type { FastifyRequest } from 'fastify'
import t from 'tap'
import { compileBodyFields, fieldsOf } from '../../../src/app/hooks/audit-fields.ts'
import type { AuditConfig } from '../../../src/config/schema/audit.ts'

const fields = { form: { amount: 'plain', iban: 'last4', ['__proto__']: 'plain' } }
const compiled = compileBodyFields({ fields, key: ['k'.repeat(32)] } as unknown as AuditConfig)

function recorded(text: string) {
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const request = { clientBody: Buffer.from(text), headers } as unknown as FastifyRequest
  return fieldsOf(request, compiled.get('form'))
}

t.test('of a form that repeats a name, no value can hide behind another', async t => {
  t.same(recorded('amount=9000&amount=1&iban=DE02120300000000202051'), {
    amount: '9000, 1',
    iban: '…2051'
  })
})

t.test('names that mean something to JavaScript are names like others', async t => {
  const value = recorded('__proto__=x&constructor=y&amount=1')
  t.equal(Object.getPrototypeOf(value), Object.prototype)
  t.match(value, { amount: '1' })
})
