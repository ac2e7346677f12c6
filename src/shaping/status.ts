/** Success or failure as a back-end's body reports it, for back-ends that always answer 200. */
import type { openDialects, ShapeStep } from '../config/schema/shapes.ts'
import { GatewayError } from '../errors/errors.ts'
import { type Json, textOf, valueAt } from '../json/values.ts'

type Refusal = (body: Json) => GatewayError | undefined
type StatusTest = Omit<NonNullable<ShapeStep['status']>, 'message'> & {
  readonly messages: readonly string[]
}

const dialects: Record<(typeof openDialects)[number], StatusTest> = {
  'ant-design-pro': {
    path: 'success',
    ok: [true],
    otherwise: 502,
    messages: ['errorMessage', 'message']
  },
  'base-response': { path: 'ok', ok: [true], otherwise: 502, messages: ['message'] },
  'code-data': { path: 'code', ok: [0, 200, 20000], otherwise: 502, messages: ['message', 'msg'] }
}

const usualMessages = ['message', 'msg', 'errorMessage']

/** Members that hold an error number in dialects whose success is a flag. */
const numbers = ['code', 'status', 'errorCode']

function testOf({ open, status }: ShapeStep): StatusTest {
  if (open !== undefined) return dialects[open]
  const { message, ...test } = status as NonNullable<typeof status>
  return { ...test, messages: message === undefined ? usualMessages : [message] }
}

export function compileStatus(step: ShapeStep): Refusal {
  const { path, ok, statuses = {}, otherwise, messages } = testOf(step)
  const steps = path.split('.')
  const good = new Set(ok.map(String))
  const named = new Map(Object.entries(statuses))
  const paths = messages.map(message => message.split('.'))
  return body => {
    const value = textOf(valueAt(body, steps))
    if (value !== undefined && good.has(value)) return undefined
    const candidates = [value, ...numbers.map(name => textOf(valueAt(body, [name])))]
    const number = candidates.find(text => isErrorNumber(text) && !good.has(text))
    const [listed] = [value, number].flatMap(text =>
      text === undefined ? [] : (named.get(text) ?? [])
    )
    const message = paths
      .map(messagePath => valueAt(body, messagePath))
      .find(text => typeof text === 'string' && text !== '')
    return new GatewayError('upstream.error', {
      status: listed ?? (/^[45]\d\d$/.test(number ?? '') ? Number(number) : otherwise),
      ...(typeof message === 'string' && { message: message.slice(0, 500) }),
      // Consoles show the back-end's number.
      ...(number !== undefined && { extra: { code: Number(number) } })
    })
  }
}

/** Numbers that back-ends send for success, also beside a flag that reports a failure. */
const isSuccessNumber = (number: number) =>
  number === 0 || number === 20_000 || (number >= 200 && number < 300)

/** Consoles would show an error with a success number as a success. */
function isErrorNumber(text: string | undefined): text is string {
  return text !== undefined && /^\d{1,9}$/.test(text) && !isSuccessNumber(Number(text))
}
