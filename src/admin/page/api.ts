/** Calls of the operators' API, and their errors. */
import { createStore } from './store.ts'

export interface Operator {
  readonly name: string
  readonly via?: string
  readonly source?: string
  /** When the page's own session ends. */
  readonly endsAt?: string
}

/** `undefined`: not asked yet; `null`: nobody is signed in. */
export const operator = createStore<Operator | null | undefined>(undefined)

/** What the gateway answered instead of a result, or that it did not answer. */
export class ApiError extends Error {
  readonly status: number
  readonly code: string | undefined
  readonly requestId: string | undefined

  constructor(message: string, status: number, code?: string, requestId?: string) {
    super(message)
    this.status = status
    this.code = code
    this.requestId = requestId
  }
}

/** @param path below `/ops/api/` */
export async function getJson<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await call(path, { signal: signal ?? null })) as T
}

/** @param path below `/ops/api/` */
export async function postJson<T>(path: string, body: object): Promise<T> {
  return (await call(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body)
  })) as T
}

async function call(path: string, init: RequestInit): Promise<unknown> {
  let response: Response
  try {
    response = await fetch(`/ops/api/${path}`, { ...init, credentials: 'same-origin' })
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    throw new ApiError('', 0)
  }
  const text = await response.text()
  const value = parse(text)
  if (response.ok) return value
  if (response.status === 401 && path !== 'sign-in') operator.set(null)
  const { error, message, code, requestId } = (value ?? {}) as Record<string, string | undefined>
  throw new ApiError(
    error ?? message ?? `HTTP ${response.status}`,
    response.status,
    code,
    requestId ?? response.headers.get('x-request-id') ?? undefined
  )
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
