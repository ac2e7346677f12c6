/** The operators' API as the page reads it. Members that older gateways lack are optional. */

export interface RouteNow {
  readonly route: string
  readonly requestsPerSecond: number
  readonly errorShare: number
  readonly p50Ms?: number | null
  readonly p99Ms?: number | null
}

export interface UpstreamNow {
  readonly upstream: string
  readonly address: string
  readonly state: string
  readonly breaker?: string
  readonly ejected?: boolean | string | null
  readonly inFlight: number
  readonly queued?: number
  readonly requestsPerSecond?: number
  readonly errorShare?: number
}

export interface ProcessNow {
  readonly worker?: number
  readonly pid: number
  readonly eventLoopDelayMs?: number
  readonly rssBytes?: number
  /** Share of one core. */
  readonly cpu?: number
}

export interface ReplicaNow {
  readonly id: string
  readonly host?: string
  readonly version?: string
  readonly configHash?: string
  readonly ready?: boolean
  readonly seenAt?: string
}

/** One frame of `GET /ops/api/now/stream`. */
export interface NowFrame {
  readonly at: string
  readonly replica?: string
  readonly processes?: readonly ProcessNow[]
  readonly requestsPerSecond: number
  readonly errorShare: number
  readonly inFlight: number
  readonly queued: number
  readonly p50Ms?: number | null
  readonly p99Ms?: number | null
  readonly routes: readonly RouteNow[]
  readonly upstreams: readonly UpstreamNow[]
  readonly redis?: {
    readonly state: string
    readonly latencyMs?: number | null
    readonly since?: string | null
  }
  readonly replicas?: readonly ReplicaNow[]
  readonly config?: {
    readonly generation: number
    readonly hash?: string
    readonly state?: string
  }
}
