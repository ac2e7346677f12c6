/** Responses of a running gateway, held against what its OpenAPI document says of them. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { Called, CallOptions, TestGateway } from './gateway.ts'

// Documents are read by tests that name the members they expect.
type Tree = Record<string, any>

export interface Described extends Called {
  /** Why the body does not fit its schema; undefined if it does. */
  readonly fault: string | undefined
}

export interface DocumentedGateway {
  readonly document: Tree
  /** The described response to a method and path of the document, . */
  readonly responseOf: (method: string, path: string, status: number | string) => Tree | undefined
  /** Calls a path of the document, and compares the body with the response of its status. */
  readonly call: (path: string, options?: CallOptions) => Promise<Described>
}

export async function documentOf(gateway: TestGateway): Promise<DocumentedGateway> {
  const document = (await (await gateway.ops('/openapi.json')).json()) as Tree
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  addFormats.default(ajv)
  ajv.addSchema(document, 'd')
  const responseOf = (method: string, path: string, status: number | string) => {
    return document['paths'][path]?.[method.toLowerCase()]?.responses[status] as Tree | undefined
  }
  const faultOf = (schema: Tree | undefined, body: unknown): string | undefined => {
    if (schema === undefined) return 'the document has no such status'
    const local = JSON.parse(JSON.stringify(schema).replaceAll('"$ref":"#', '"$ref":"d#')) as Tree
    return ajv.validate(local, body) ? undefined : ajv.errorsText()
  }
  const call = async (path: string, options: CallOptions = {}) => {
    const answer = await gateway.call(path, options)
    const method = options.method ?? (options.json === undefined ? 'GET' : 'POST')
    const statuses = [answer.status, `${String(answer.status)[0]}XX`, 'default']
    const response = statuses.map(each => responseOf(method, path, each)).find(Boolean)
    const { content = {} } = response ?? {}
    const type = String(answer.headers.get('content-type')).split(';', 1)[0] ?? ''
    const { schema = {} } = content[type] ?? content['*/*'] ?? {}
    const fault =
      response === undefined ? faultOf(undefined, answer.json) : faultOf(schema, answer.json)
    return { ...answer, fault }
  }
  return { document, responseOf, call }
}
