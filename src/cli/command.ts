import type { Readable, Writable } from 'node:stream'
import { connectionBound } from '../config/schema/header-names.ts'

export type Input = Readable & { readonly isTTY?: boolean }
export type Output = Writable & { readonly isTTY?: boolean; columns?: number }

/** All that a command but `start` has of its process, so that it can run within another program. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly stdin: Input
  readonly stdout: Output
  readonly stderr: Output
}

export interface Connection {
  readonly base: string
  /** Of a gateway on this machine, which needs no token. */
  readonly socketPath?: string
  readonly id?: string
  readonly token?: string
}

export type Values = Readonly<Record<string, unknown>>

export interface Invocation<V = Values> {
  readonly config: string
  readonly configs: readonly string[]
  readonly gateway: Connection | undefined
  readonly json: boolean
  readonly values: V
  readonly rest: readonly string[]
  readonly io: Io
}

export type Columns<Row> = Readonly<Record<string, (row: Row) => string>>

/** @param none the text in place of a table without rows */
export function tableOf<Row>(rows: readonly Row[], columns: Columns<Row>, none = ''): Shown {
  const cells = rows.map(row => Object.values(columns).map(cell => cell(row)))
  return rows.length === 0 ? { text: none } : { table: [Object.keys(columns), ...cells] }
}

export type Asked = readonly [
  path: string,
  fields?: { readonly query?: object; readonly body?: object }
]

/** How a response is shown, in this order; with `--json` as it is. */
export interface Shown {
  readonly json?: object
  /** Text that is escaped already, and may have colours. */
  readonly painted?: string
  readonly table?: ReadonlyArray<readonly string[]>
  readonly text?: string
  readonly note?: string
  /** Nothing was done: it is said on standard error, and the exit code is 3. */
  readonly isRefusal?: boolean
  readonly code?: number
}

export interface Asking<Answer, V> {
  readonly ask: (invocation: Invocation<V>) => Asked | Promise<Asked>
  readonly show: (answer: Answer, invocation: Invocation<V>) => Shown | Promise<Shown>
}

export const defaultFolder = 'config'

/** Thrown for a wrong command line: the command's usage is shown, and the exit code is 2. */
export class UsageError extends Error {}

/** Thrown by a command that failed, with a message for the operator; the exit code is 1. */
export class CommandError extends Error {}

const field = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[\t ]*([\x20-\x7e]*[\x21-\x7e])[\t ]*$/

/** A text may be a secret, so no message repeats it. @throws UsageError */
export function headersOf(texts: readonly string[]): Readonly<Record<string, string>> {
  const headers = new Map<string, string>()
  for (const text of texts) {
    const [, written = '', value = ''] = field.exec(text) ?? []
    const name = written.toLowerCase()
    if (name === '') {
      throw new UsageError('--header takes a name and printable ASCII, such as "tenant-id: 1".')
    }
    if (headers.has(name)) throw new UsageError(`--header: "${name}" has two values.`)
    if (connectionBound.has(name) || name === 'content-length') {
      throw new UsageError(`--header: "${name}" belongs to the connection, and cannot be chosen.`)
    }
    headers.set(name, value)
  }
  return Object.fromEntries(headers)
}

export function fitting(schema: object): (text: string) => string | undefined {
  const { pattern = '', expected } = schema as { readonly pattern?: string; expected?: string }
  return text => (new RegExp(pattern).test(text) ? undefined : expected)
}
