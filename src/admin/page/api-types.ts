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
  readonly inFlight: number
  readonly queued?: number
  readonly requestsPerSecond?: number
  readonly errorShare?: number
}

export interface ProcessNow {
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
  readonly process?: ProcessNow
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

/** `GET /ops/api/sessions`. */
export interface SessionsAnswer {
  readonly sessions: readonly SessionRow[]
  /** Users who fit the search, on all pages. */
  readonly users?: number
  /** `after` of the next page; missing on the last. */
  readonly next?: string
}

export interface SessionRow {
  readonly id: string
  readonly user: string
  readonly userId: string
  readonly source: string
  readonly startedAt: string
  readonly lastUsedAt: string
  /** Seconds. */
  readonly idleIn: number
  readonly absoluteIn: number
  readonly address: string
  readonly agent: string
}

/** `GET /ops/api/lockouts`. */
export interface LockoutsAnswer {
  readonly lockouts: readonly LockoutRow[]
  readonly total: number
}

export interface LockoutRow {
  readonly kind: string
  readonly account?: string
  readonly address?: string
  readonly until: string
}

/** `GET /ops/api/requests`; times are milliseconds. */
export interface RequestsAnswer {
  readonly requests: readonly RequestRow[]
  readonly hasMore?: boolean
  /** Why those of other replicas are missing. */
  readonly problem?: string
}

export interface RequestRow {
  readonly requestId: string
  readonly at: string
  readonly ms: number
  readonly method: string
  readonly path: string
  readonly address?: string
  readonly route: string
  readonly upstream?: string
  readonly status: number
  readonly code?: string
  readonly reason?: string
  readonly message?: string
  readonly advice?: string
  readonly isCut?: boolean
  readonly limit?: string
  readonly limitMax?: number
  readonly needsRoles?: readonly string[]
  readonly user?: string
  readonly userId?: string
  readonly source?: string
  readonly session?: string
  readonly endedSession?: string
  readonly sessionFrom?: string
  readonly sessionMs?: number
  readonly sessionAgeMs?: number
  readonly sessionEnded?: string
  readonly limits?: readonly RequestLimit[]
  readonly limitsMs?: number
  readonly attempts?: readonly RequestAttempt[]
  readonly queueMs?: number
  readonly missing?: readonly string[]
  readonly isFallback?: boolean
  readonly shapeMs?: number
  readonly sent?: number
  readonly traceId?: string
  readonly replica?: string
}

interface RequestLimit {
  readonly name: string
  readonly count?: number
  readonly max: number
  readonly isEnforced: boolean
  readonly isExceeded: boolean
}

interface RequestAttempt {
  readonly upstream: string
  readonly address: string
  readonly purpose?: string
  readonly part?: string
  readonly atMs: number
  readonly ms?: number
  readonly status?: number
  readonly failure?: string
  readonly reason?: string
}

/** `GET /ops/api/config`. */
export interface ConfigAnswer {
  readonly folder: string
  readonly generation: number
  readonly hash: string
  readonly takenAt: string
  readonly by: string
  readonly changes: readonly string[]
  readonly files: {
    readonly state: string
    readonly since?: string
    readonly faults?: readonly string[]
  }
  readonly restartNeeded: readonly string[]
}

/** `GET /ops/api/config/files`: where the files differ from what runs. */
export interface FilesAnswer {
  readonly state: string
  readonly reload: readonly string[]
  readonly restart: readonly string[]
  readonly risks: readonly string[]
  readonly faults: readonly string[]
  readonly files: readonly WrittenDiff[]
}

export interface WrittenDiff {
  readonly file: string
  /** Lines of YAML, each with a sign in front. */
  readonly diff: string
}

export interface Expectation {
  readonly text: string
  readonly isMet: boolean
  readonly message?: string
}

export interface ExpectationsAnswer {
  readonly expectations: readonly Expectation[]
}

export interface Contract {
  readonly route: string
  readonly checked?: number
  readonly drift: readonly string[]
}

export interface ContractsAnswer {
  readonly contracts: readonly Contract[]
}

export interface MaintenanceRecord {
  readonly until?: string
  readonly message?: string
  readonly author?: string
  readonly since?: string
  readonly routes?: readonly string[]
  readonly methods?: readonly string[]
  readonly allowRoles?: readonly string[]
}

/** `GET /ops/api/maintenance`. */
export interface MaintenanceAnswer {
  readonly file: MaintenanceRecord | null
  readonly operators: readonly MaintenanceRecord[]
  /** Whether it reaches all replicas. */
  readonly shared: boolean
  readonly info?: string
}

/** `GET /ops/api/limits`. */
export interface LimitsAnswer {
  readonly limits: readonly LimitRow[]
}

interface LimitUse {
  readonly used: number
  readonly caller: string
}

export interface LimitRow {
  readonly limit: string
  readonly mode: string
  readonly by: readonly string[]
  readonly max: number
  readonly windowMs: number
  /** The highest use of this hour, and of 24 hours. */
  readonly hour?: LimitUse
  readonly day?: LimitUse
  readonly over: readonly string[]
  readonly nearest: readonly LimitUse[]
}
