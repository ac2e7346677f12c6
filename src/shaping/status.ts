/** What a back-end that answers 200 whatever happened says of itself in its body. */
import type { openDialects, ShapeStep } from '../config/schema/shapes.ts'
import { GatewayError } from '../errors.ts'
import { type Json, textOf, valueAt } from '../json/values.ts'

type Refusal = (body: Json) => GatewayError | undefined
type Rule = Omit<NonNullable<ShapeStep['status']>, 'message'> & {
  readonly messages: readonly string[]
}

const dialects: Record<(typeof openDialects)[number], Rule> = {
  'ant-design-pro': {
    path: 'success',
    ok: [true],
    otherwise: 502,
    messages: ['errorMessage', 'message']
  },
  'base-response': { path: 'ok', ok: [true], otherwise: 502, messages: ['message'] },
  'code-data': { path: 'code', ok: [0, 200, 20000], otherwise: 502, messages: ['message', 'msg'] }
}

/** Members where dialects that tell success by a flag have the number beside it. */
const numbers = ['code', 'status', 'errorCode']

/** @param step one with `open` or `status` */
export function compileStatus({ open, status }: ShapeStep): Refusal {
  const {
    path,
    ok,
    statuses = {},
    otherwise,
    messages
  }: Rule = open === undefined
    ? {
        ...(status as NonNullable<typeof status>),
        messages:
          status?.message === undefined ? ['message', 'msg', 'errorMessage'] : [status.message]
      }
    : dialects[open]
  const steps = path.split('.')
  const good = new Set(ok.map(String))
  const named = new Map(Object.entries(statuses))
  const paths = messages.map(message => message.split('.'))
  return body => {
    const value = textOf(valueAt(body, steps))
    if (value !== undefined && good.has(value)) return undefined
    const told = [value, ...numbers.map(name => textOf(valueAt(body, [name])))]
    const number = told.find(text => isErrorNumber(text) && !good.has(text))
    const message = paths
      .map(found => valueAt(body, found))
      .find(text => typeof text === 'string' && text !== '')
    return new GatewayError('upstream.error', {
      status:
        named.get(value ?? '') ??
        named.get(number ?? '') ??
        (isErrorStatus(number) ? Number(number) : otherwise),
      ...(typeof message === 'string' && { message: message.slice(0, 500) }),
      // Consoles show the back-end's own number.
      ...(number !== undefined && { extra: { code: Number(number) } })
    })
  }
}

/** What back-ends say where all went well, also beside a flag that says that it did not. */
const isSuccessNumber = (number: number) =>
  number === 0 || number === 20_000 || (number >= 200 && number < 300)

/** An error that carried the number of success would be shown as one. */
function isErrorNumber(text: string | undefined): text is string {
  return text !== undefined && /^\d{1,9}$/.test(text) && !isSuccessNumber(Number(text))
}

function isErrorStatus(number: string | undefined) {
  return number !== undefined && /^[45]\d\d$/.test(number)
}
