/** Reads and validates bodies of the gateway's own endpoints. */
import { isIP } from 'node:net'
import { Ajv, type ValidateFunction } from 'ajv'
import type { FastifyInstance, FastifySchemaCompiler, FastifyServerOptions } from 'fastify'
import { parseKeepingDigits } from '../../json/digits.ts'

/** Fastify's own validator converts values and drops members, and to load it takes 3 MB. */
export const schemaController: NonNullable<FastifyServerOptions['schemaController']> = {
  compilersFactory: {
    // The type is that of Fastify's own validator, which gets a schema without its route.
    buildValidator: createValidator as never,
    buildSerializer: () => () => JSON.stringify
  }
}

function createValidator(): FastifySchemaCompiler<object> {
  let ajv: Ajv | undefined
  return ({ schema }) => {
    // Compiled by the first request: all schemas of the operators' API take 40 ms of the start.
    let validate: ValidateFunction | undefined
    return value => {
      ajv ??= createAjv()
      validate ??= ajv.compile(schema)
      return validate(value) ? true : { error: validate.errors ?? [] }
    }
  }
}

function createAjv(): Ajv {
  return new Ajv({
    // Defaults of a query; bodies have none.
    useDefaults: true,
    // Lengths are counted as in JavaScript, like those of stored texts.
    unicode: false,
    formats: { ip: (text: string) => isIP(text) !== 0 },
    // The schemas are our own: to compile the meta schema costs more than all of them.
    meta: false,
    validateSchema: false,
    allowUnionTypes: true,
    strictRequired: false,
    strictTypes: false,
    logger: false
  })
}

/** Replaces Fastify's own parser, which rounds numbers beyond 2^53: that one only checks. */
export function readJsonBodies(app: FastifyInstance): void {
  // Also for members that would replace a prototype where the body is copied.
  const check = app.getDefaultJsonParser('error', 'error')
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    const text = String(body).replace(/^\ufeff/, '')
    let fault: Error | null = null
    let value: unknown
    void check(request, text, error => {
      fault = error
      value = error === null ? parseKeepingDigits(text) : undefined
    })
    done(fault, value)
  })
}

/** Some consoles post forms. Of a name that comes twice the last. @param flag is true or false */
export function readForms(scope: FastifyInstance, flag: string): void {
  const type = 'application/x-www-form-urlencoded'
  scope.addContentTypeParser(type, { parseAs: 'string' }, (_request, body, done) => {
    // `fromEntries` makes own members of all names, `__proto__` too.
    const { [flag]: value, ...texts } = Object.fromEntries(new URLSearchParams(String(body)))
    const isOn = value !== undefined && /^(?:true|on|1)$/.test(value)
    done(null, value === undefined ? texts : { ...texts, [flag]: isOn })
  })
}
