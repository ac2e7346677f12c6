/** Calls of the operators' API, and their errors. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { createStore } from './store.ts'

export interface Operator {
  readonly name: string
  readonly via?: string
  readonly source?: string
  /** When the page's own session ends, in milliseconds since 1970. */
  readonly until?: number
}

/** `undefined`: not asked yet; `null`: nobody is signed in. */
export const operator = createStore<Operator | null | undefined>(undefined)

/** The gateway's answer in the place of a result, or its silence. */
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

/** A call that hangs counts as no answer, so that it is asked again. */
export const timeoutMs = 20_000

/** @param path below `/ops/api/` */
export async function getJson<T>(
  path: string,
  signal = AbortSignal.timeout(timeoutMs)
): Promise<T> {
  return (await call(path, { signal })) as T
}

/** @param path below `/ops/api/` */
export async function postJson<T>(path: string, body: object): Promise<T> {
  return (await call(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body)
  })) as T
}

interface Call extends RequestInit {
  readonly headers?: Readonly<Record<string, string>>
}

async function call(path: string, init: Call): Promise<unknown> {
  let response: Response
  let text: string
  try {
    response = await fetch(`/ops/api/${path}`, {
      ...init,
      credentials: 'same-origin'
    })
    text = await response.text()
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    throw new ApiError('', 0)
  }
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

export interface Asked<T> {
  /** The latest result; it stays while a later call fails. */
  readonly data: T | undefined
  readonly error: ApiError | undefined
  readonly isLoading: boolean
  readonly reload: () => void
}

/**
 * The answer of a path, asked again when the path changes, when somebody has signed in again, and
 * regularly where `everyMs` is given and the page is visible. A slow answer is waited for.
 */
export function useJson<T>(path: string | undefined, everyMs?: number): Asked<T> {
  const [state, setState] = useState<Omit<Asked<T>, 'reload'> & { readonly path?: string }>({
    data: undefined,
    error: undefined,
    isLoading: true
  })
  const [round, setRound] = useState(0)
  const reload = useCallback(() => setRound(count => count + 1), [])
  const running = useRef<AbortController>(undefined)
  useEffect(() => {
    if (path === undefined) return undefined
    const ask = () => {
      running.current?.abort()
      const controller = (running.current = new AbortController())
      const signal = AbortSignal.any([controller.signal, AbortSignal.timeout(timeoutMs)])
      void getJson<T>(path, signal)
        .then(
          data => setState({ data, error: undefined, isLoading: false, path }),
          (error: unknown) => {
            // The dialog that asks for the password says so.
            if (!(error instanceof ApiError) || error.status === 401) return
            setState(({ data, path: last }) => ({
              data: last === path ? data : undefined,
              error,
              isLoading: false,
              path
            }))
          }
        )
        .finally(() => {
          if (running.current === controller) running.current = undefined
        })
    }
    ask()
    const onOperator = operator.subscribe(() => {
      if (operator.get() !== null) ask()
    })
    const timer =
      everyMs === undefined
        ? undefined
        : setInterval(() => {
            const isFree = running.current === undefined
            if (isFree && !document.hidden && operator.get() !== null) ask()
          }, everyMs)
    return () => {
      onOperator()
      clearInterval(timer)
      running.current?.abort()
    }
  }, [path, everyMs, round])
  const isOfPath = state.path === path
  return {
    data: isOfPath ? state.data : undefined,
    error: isOfPath ? state.error : undefined,
    isLoading: !isOfPath || state.isLoading,
    reload
  }
}
