/** Server-sent events: responses that never end, and whose events must be sent at once. */

export function isEventStream(headers: Readonly<Record<string, unknown>>): boolean {
  return /^text\/event-stream/i.test(String(headers['content-type'] ?? ''))
}
