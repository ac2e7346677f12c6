/** Warnings about the responses of a route, each logged once: the next response has the same fault. */

interface Log {
  readonly warn: (fields: object, message: string) => void
}

export function logLabels(log: Log, route: string): (label: string) => void {
  let isLogged = false
  return label => {
    if (isLogged) return
    isLogged = true
    const text = `the response was read as the JSON that it is, although ${label}`
    log.warn({ event: 'shape.label', route, label }, `route ${route}: ${text}`)
  }
}

export function logMissing(log: Log, shape: string): (path: string) => void {
  const logged = new Set<string>()
  return path => {
    if (logged.has(path)) return
    logged.add(path)
    log.warn(
      { event: 'shape.missing', shape, path },
      `shape ${shape}: unwrap found nothing at "${path}" of an answer, and goes on with null. ` +
        'Look at the answer with `console-gateway explain GET PATH --live`'
    )
  }
}
