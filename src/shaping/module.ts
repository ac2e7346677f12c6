/** Own code: loads the modules that config names, and calls them. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import type { Config } from '../config/schema/config.ts'
import { fileIn } from '../config/schema/resolved.ts'
import { GatewayError, reasonOf } from '../errors/errors.ts'
import { parseKeepingDigits } from '../json/digits.ts'
import type { Json } from '../json/values.ts'
import type { User } from './own-code.d.ts'

/** Rejects with an Error that names the module's file and line, and has a cause. */
export type OwnCode = (...values: unknown[]) => Promise<Json>
export type Modules = ReadonlyMap<string, OwnCode>

const moduleTimeoutMs = 5000

export class ModulesError extends Error {
  readonly reasons: ReadonlyMap<string, string>

  constructor(reasons: ReadonlyMap<string, string>) {
    super([...reasons.values()].join('\n'))
    this.reasons = reasons
  }
}

/** @throws ModulesError */
export async function loadModules(
  config: Pick<Config, 'folder' | 'bases' | 'modules'>
): Promise<Modules> {
  const loaded = new Map<string, OwnCode>()
  const reasons = new Map<string, string>()
  for (const [file, text] of Object.entries(config.modules)) {
    try {
      loaded.set(file, await loadModule(file, fileIn(config, file), text))
    } catch (error) {
      reasons.set(file, reasonOf(error))
    }
  }
  if (reasons.size > 0) throw new ModulesError(reasons)
  return loaded
}

async function loadModule(file: string, path: string, text: string): Promise<OwnCode> {
  const address = await addressOf(path, text)
  let module: Readonly<Record<string, unknown>>
  try {
    module = await inTime(import(address) as Promise<typeof module>)
  } catch (error) {
    const place = error instanceof SyntaxError ? await placeOfSyntax(path) : placeIn(error, address)
    throw new Error(`${file}${place}`, { cause: error })
  }
  const { default: exported } = module
  // Of CommonJS, which Node loads once whatever its content.
  if (typeof exported !== 'function' || Object.hasOwn(module, 'module.exports')) {
    throw new Error(`${file}: has no \`export default\` of a function`)
  }
  return async (...values) => {
    try {
      return plainCopy(await inTime(Promise.try(exported as OwnCode, ...values)))
    } catch (error) {
      throw new Error(`${file}${placeIn(error, address)}`, { cause: error })
    }
  }
}

export async function callShape(
  code: OwnCode,
  value: Json,
  { route, user }: ShapeUse
): Promise<Json> {
  try {
    return await code(plainCopy(value), { route, user: user && plainCopy(user) })
  } catch (cause) {
    throw new GatewayError('shape.module', { cause })
  }
}

/** One a content, so that Node loads it anew; a text that is no file's any more, without it. */
async function addressOf(path: string, text: string): Promise<string> {
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 16)
  const now = await readFile(path, 'utf8').catch(() => undefined)
  if (now?.replace(/^\ufeff/, '') !== text) {
    return `data:text/javascript,${encodeURIComponent(text)}`
  }
  return `${pathToFileURL(path).href}?content=${hash}`
}

async function inTime<T>(promise: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => late.reject(new Error(`took longer than ${moduleTimeoutMs / 1000} s`)),
    moduleTimeoutMs
  )
  try {
    return await Promise.race([promise, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

/** JSON of which nobody else has a part; long numbers are texts. @throws TypeError for no JSON */
function plainCopy(value: unknown): Json {
  const text = JSON.stringify(value) as string | undefined
  if (text === undefined) throw new TypeError(`it is ${typeof value}, which is no JSON`)
  return parseKeepingDigits(text, digits => digits)
}

/** `:LINE`, where the stack tells one. */
function placeIn(error: unknown, address: string): string {
  const stack = error instanceof Error ? String(error.stack) : ''
  const start = stack.indexOf(`${address}:`)
  const line = start === -1 ? undefined : /^\d+/.exec(stack.slice(start + address.length + 1))
  return line ? `:${line[0]}` : ''
}

/** `:LINE`: the error of an import tells none. */
function placeOfSyntax(path: string): Promise<string> {
  return new Promise(done => {
    execFile(process.execPath, ['--check', path], (_error, _out, told) => {
      const line = /:(\d+)$/m.exec(told.split('\n', 1)[0] ?? '')?.[1]
      done(line === undefined ? '' : `:${line}`)
    })
  })
}

/** The request as the console sent it, and the headers of the response. */
export interface Exchange {
  readonly target: string
  readonly body?: Buffer | undefined
  /** Of the response. */
  readonly headers?: Readonly<Record<string, string | string[] | undefined>> | undefined
}

export interface ShapeUse extends Exchange {
  readonly route: string
  readonly user?: User | undefined
}

export type Operation = (value: Json, use: ShapeUse) => Json
