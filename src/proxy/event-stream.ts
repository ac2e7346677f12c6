/** Server-sent events: responses that never end, and whose events must be sent at once. */

type Headers = Readonly<Record<string, string | string[] | undefined>>

export function isEventStream(headers: Headers): boolean {
  return /^text\/event-stream/i.test(String(headers['content-type'] ?? ''))
}
