/** Responses of a running gateway, held against what its OpenAPI document says of them. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { Called, CallOptions, TestGateway } from './gateway.ts'

// Documents are read by tests that name the members they expect.
type Tree = Record<string, any>

export async function documentOf(gateway: TestGateway) {
  const document = (await (await gateway.ops('/openapi.json')).json()) as Tree
  const ajv = new Ajv2020({ strict: false, allErrors: true })
  addFormats.default(ajv)
  ajv.addSchema(document, 'd')
  /** The described response to a method and path of the document. */
  const responseOf = (method: string, path: string, status: number | string) => {
    return document['paths'][path]?.[method.toLowerCase()]?.responses[status] as Tree | undefined
  }
  const faultOf = (response: Tree | undefined, { headers, text, json }: Called) => {
    if (response === undefined) return 'the document has no such status'
    const { content = {} } = response
    const type = String(headers.get('content-type')).split(';', 1)[0] ?? ''
    const described = content[type] ?? content['*/*'] ?? (text === '' ? {} : undefined)
    if (described === undefined) return `the document has no ${type}`
    const { schema = {} } = described
    const local = JSON.parse(JSON.stringify(schema).replaceAll('"$ref":"#', '"$ref":"d#')) as Tree
    return ajv.validate(local, json) ? undefined : ajv.errorsText()
  }
  /**
   * Calls a path, and compares the body with the response of its status: `fault` says why it does
   * not fit.
   * @param options `at`: the path in the document, where that has a parameter
   */
  const call = async (
    path: string,
    { at = path, ...options }: CallOptions & { at?: string } = {}
  ) => {
    const answer = await gateway.call(path, options)
    const method = options.method ?? (options.json === undefined ? 'GET' : 'POST')
    const statuses = [answer.status, `${String(answer.status)[0]}XX`, 'default']
    const response = statuses.map(each => responseOf(method, at, each)).find(Boolean)
    return { ...answer, fault: faultOf(response, answer) }
  }
  return { document, responseOf, call }
}
