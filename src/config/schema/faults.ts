import { relative } from 'node:path'

export interface Fault {
  readonly file: string
  /** 0 for the whole file. */
  readonly line: number
  readonly path: string
  readonly message: string
  readonly severity: 'fault' | 'warning'
}

export class ConfigError extends Error {
  readonly faults: readonly Fault[]
  constructor(faults: readonly Fault[]) {
    super(faults.map(describeFault).join('\n'))
    this.name = 'ConfigError'
    this.faults = faults
  }
}

/** As `routes.yaml:12 routes.a.upstream: there is no upstream "x"`. */
export function describeFault({ file, line, path, message, severity }: Fault): string {
  const place = line > 0 ? `${file}:${line}` : file
  const key = path === '' ? '' : `${path}: `
  return `${place} ${key}${severity === 'warning' ? 'warning: ' : ''}${message}`
}

/** Relative to the current folder when below it; absolute otherwise. */
export function displayName(file: string): string {
  const fromHere = relative(process.cwd(), file)
  return fromHere.startsWith('..') ? file : fromHere
}

export function faultOfFile(file: string, message: string, line = 0): Fault {
  return { file: displayName(file), line, path: '', message, severity: 'fault' }
}

export function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  return code ?? message
}

/** Keys of other gateways, with what stands for them here. */
const otherGateways: Readonly<Record<string, string>> = {
  workers: 'A process is a replica: start several.',
  retries: 'GET, HEAD and OPTIONS are tried once more by themselves.',
  weight: 'Each request goes to the address with the fewest.',
  circuitBreaker: 'Addresses that fail are left out by themselves.',
  captcha: 'It is an outcome of a source, `challenge`.',
  cors: 'Other origins are in `server.origins`.',
  ssl: 'It is `server.tls`, and `tls` of an upstream.',
  stripPrefix: 'It is `rewrite` of a route.',
  rateLimit: 'It is `limits` of limits.yaml.',
  plugins: 'Own code is a step `module` of a shape.'
}

/** Advice for an unknown key. @param elsewhere a place where a key of this name stands */
export function insteadOf(key: string, keys: Iterable<string>, elsewhere?: string): string {
  const advice = Object.hasOwn(otherGateways, key) ? otherGateways[key] : undefined
  if (advice !== undefined) return ` ${advice}`
  return nearest(key, keys) || (elsewhere === undefined ? '' : ` There is \`${elsewhere}\`.`)
}

/** ` Did you mean "x"?`; empty if none is similar. */
export function nearest(written: string, names: Iterable<string>): string {
  let best = ''
  let bestDistance = Math.max(2, Math.floor(written.length / 3)) + 1
  for (const candidate of names) {
    const isBeginning = candidate.startsWith(`${written}-`)
    const distance = isBeginning ? 1 : editDistance(written.toLowerCase(), candidate.toLowerCase())
    if (distance < bestDistance) {
      bestDistance = distance
      best = candidate
    }
  }
  return best === '' ? '' : ` Did you mean "${best}"?`
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      next[j] = Math.min(
        (row[j] ?? 0) + 1,
        (next[j - 1] ?? 0) + 1,
        (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      )
    }
    row = next
  }
  return row[b.length] ?? 0
}
