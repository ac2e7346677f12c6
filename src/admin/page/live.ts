/** The live stream of `/ops/api/now/stream`, and the last minutes of it for charts. */
import { pauseWhileHidden } from './hidden-tab.ts'
import { createStore } from './store.ts'
import { getJson, operator } from './api.ts'
import type { NowFrame, RouteNow } from './api-types.ts'

export type LiveState = 'connecting' | 'live' | 'lost'

interface Live {
  readonly state: LiveState
  readonly frame: NowFrame | undefined
  /** Milliseconds since the epoch, of the last frame. */
  readonly lastAt: number | undefined
}

/** Points of a chart; one a second. */
export const historyLength = 300
/** A stream without a frame, or a call without an answer, for this long counts as lost. */
const silenceMs = 5000
const retryMs = 2000
const measures = 4

/** The values of one route, or of all: four rings beside each other. */
class Series {
  readonly #values = new Float32Array(historyLength * measures).fill(Number.NaN)

  set(slot: number, { requestsPerSecond, errorShare, p50Ms, p99Ms }: Measures): void {
    this.#values[slot] = requestsPerSecond
    this.#values[historyLength + slot] = requestsPerSecond * errorShare
    this.#values[historyLength * 2 + slot] = p50Ms ?? Number.NaN
    this.#values[historyLength * 3 + slot] = p99Ms ?? Number.NaN
  }

  clear(slot: number): void {
    for (let measure = 0; measure < measures; measure++) {
      this.#values[historyLength * measure + slot] = Number.NaN
    }
  }

  /** The values of one measure, the oldest first; `null` where there was none. */
  read(measure: 0 | 1 | 2 | 3, slots: readonly number[]): Array<number | null> {
    return slots.map(slot => {
      const value = this.#values[historyLength * measure + slot] ?? Number.NaN
      return Number.isNaN(value) ? null : value
    })
  }
}

interface Measures {
  readonly requestsPerSecond: number
  readonly errorShare: number
  readonly p50Ms?: number | null | undefined
  readonly p99Ms?: number | null | undefined
}

/** The last frames; `times` in seconds, the oldest first, `slots` where their values stand. */
class History {
  readonly times: number[] = []
  readonly slots: number[] = []
  readonly all = new Series()
  readonly routes = new Map<string, Series>()
  #next = 0

  add(frame: NowFrame): void {
    const slot = this.#next
    this.#next = (slot + 1) % historyLength
    const time = Date.parse(frame.at) / 1000
    this.times.push(Number.isNaN(time) ? Date.now() / 1000 : time)
    this.slots.push(slot)
    if (this.times.length > historyLength) {
      this.times.shift()
      this.slots.shift()
    }
    this.all.set(slot, { ...frame, p50Ms: frame.p50Ms, p99Ms: frame.p99Ms })
    for (const series of this.routes.values()) series.clear(slot)
    for (const route of frame.routes) this.#seriesOf(route).set(slot, route)
  }

  #seriesOf({ route }: RouteNow): Series {
    let series = this.routes.get(route)
    if (series === undefined) this.routes.set(route, (series = new Series()))
    return series
  }
}

export const history = new History()
export const live = createStore<Live>({ state: 'connecting', frame: undefined, lastAt: undefined })

let source: EventSource | undefined
let timer: ReturnType<typeof setTimeout> | undefined
let isPaused = false

/** Ends the stream of a tab that is hidden for long, and opens it when the tab is shown again. */
export function pauseLiveWhileHidden(): () => void {
  const pause = () => {
    if (timer === undefined) return
    stopLive()
    isPaused = true
  }
  const resume = () => {
    if (isPaused) startLive()
  }
  return pauseWhileHidden(pause, resume)
}

/** Connects, and goes on connecting until somebody's session ends. */
export function startLive(): void {
  stopLive()
  const stream = (source = new EventSource('/ops/api/now/stream'))
  stream.addEventListener('now', event => {
    if (stream !== source) return
    const frame = JSON.parse(String(event.data)) as NowFrame
    history.add(frame)
    live.set({ state: 'live', frame, lastAt: Date.now() })
    expectFrame()
  })
  // The operator is signed out, or the gateway stops.
  stream.addEventListener('end', () => {
    if (stream === source) retryLater()
  })
  stream.addEventListener('error', () => {
    if (stream === source) retryLater()
  })
  expectFrame()
}

export function stopLive(): void {
  source?.close()
  source = undefined
  clearTimeout(timer)
  timer = undefined
  isPaused = false
}

function expectFrame(): void {
  clearTimeout(timer)
  timer = setTimeout(retryLater, silenceMs)
}

/**
 * A stream does not say why it ended, so a call asks whether the session did. The first is made at
 * once.
 */
function retryLater(): void {
  stopLive()
  const wasLive = live.get().state === 'live'
  live.set({ ...live.get(), state: wasLive ? 'connecting' : 'lost' })
  const retry = setTimeout(
    () => {
      void getJson('me', AbortSignal.timeout(silenceMs)).then(
        () => {
          // Meanwhile the stream may have been stopped.
          if (timer === retry) startLive()
        },
        () => {
          if (timer === retry && operator.get() !== null) retryLater()
        }
      )
    },
    wasLive ? 0 : retryMs
  )
  timer = retry
}
