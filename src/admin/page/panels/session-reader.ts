/** Reads the pages of the signed-in sessions: the first, and as many more as somebody asked for. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, type Asked, getJson, operator, timeoutMs } from '../api.ts'
import type { SessionRow, SessionsAnswer } from '../api-types.ts'

const everyMs = 5000
const firstSize = 200
const moreSize = 1000

export interface ListedSessions {
  readonly sessions: readonly SessionRow[]
  /** Users who fit the search, on all pages. */
  readonly users: number
  readonly hasMore: boolean
}

interface Reading {
  readonly data: ListedSessions | undefined
  readonly error: ApiError | undefined
  readonly isLoading: boolean
}

const nothing: Reading = { data: undefined, error: undefined, isLoading: true }

export interface SessionList extends Asked<ListedSessions> {
  readonly more: () => void
}

/** @param search a part of a user's name or id; `undefined` reads nothing */
export function useSessionList(search: string | undefined): SessionList {
  const [reading, setReading] = useState<Reading>(nothing)
  const reader = useRef<SessionReader>(undefined)
  useEffect(() => {
    setReading(nothing)
    if (search === undefined) return undefined
    const started = (reader.current = new SessionReader(search, setReading))
    started.reload()
    const onOperator = operator.subscribe(() => {
      if (operator.get() !== null) started.reload()
    })
    const timer = setInterval(() => {
      if (!document.hidden && operator.get() !== null) started.refresh()
    }, everyMs)
    return () => {
      onOperator()
      clearInterval(timer)
      started.stop()
      reader.current = undefined
    }
  }, [search])
  return {
    ...reading,
    reload: () => reader.current?.reload(),
    more: () => reader.current?.more()
  }
}

class SessionReader {
  readonly #search: string
  readonly #onChange: (reading: Reading) => void
  #pages: SessionsAnswer[] = []
  /** The page that the next refresh reads. */
  #next = 0
  #running: AbortController | undefined

  constructor(search: string, onChange: (reading: Reading) => void) {
    this.#search = search
    this.#onChange = onChange
  }

  /** Reads all pages again that are listed, such as after an act. */
  reload(): void {
    this.#start(0, Math.max(1, this.#pages.length))
  }

  /** Reads the page behind the last. */
  more(): void {
    this.#start(this.#pages.length, this.#pages.length + 1)
  }

  /** Reads one page again, by turns, so that a long list costs the gateway no more than a short. */
  refresh(): void {
    if (this.#running !== undefined) return
    if (this.#next >= this.#pages.length) this.#next = 0
    this.#start(this.#next, ++this.#next)
  }

  stop(): void {
    this.#running?.abort()
  }

  #start(from: number, end: number): void {
    this.stop()
    const running = (this.#running = new AbortController())
    const signal = AbortSignal.any([running.signal, AbortSignal.timeout(timeoutMs * (end - from))])
    void this.#readAll(from, end, signal)
      .catch((error: unknown) => {
        if (!running.signal.aborted) this.#tell(errorOf(error))
      })
      .finally(() => {
        if (this.#running === running) this.#running = undefined
      })
  }

  async #readAll(from: number, end: number, signal: AbortSignal): Promise<void> {
    for (let index = from; index < end; index++) {
      const after = this.#pages[index - 1]?.next
      if (index > 0 && after === undefined) return
      const query = new URLSearchParams({ size: String(index === 0 ? firstSize : moreSize) })
      if (this.#search !== '') query.set('search', this.#search)
      if (after !== undefined) query.set('after', after)
      const page = await getJson<SessionsAnswer>(`sessions?${query.toString()}`, signal)
      // Users who came or went move the end of a page; the page behind it follows at its turn.
      const behind = page.next === undefined ? [] : this.#pages.slice(index + 1)
      this.#pages = [...this.#pages.slice(0, index), page, ...behind]
      this.#tell(undefined)
    }
  }

  #tell(error: ApiError | undefined): void {
    const data = this.#pages.length === 0 ? undefined : listOf(this.#pages)
    this.#onChange({ data, error, isLoading: false })
  }
}

/** A time-out, which is no error of the API, counts as no answer. */
function errorOf(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError('', 0)
}

function listOf(pages: readonly SessionsAnswer[]): ListedSessions {
  const rows = new Map(pages.flatMap(({ sessions }) => sessions.map(row => [row.id, row])))
  return {
    sessions: [...rows.values()],
    users: pages[0]?.users ?? rows.size,
    hasMore: pages.at(-1)?.next !== undefined
  }
}
