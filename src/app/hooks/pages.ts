/** Plain pages of the gateway's own, at addresses that browsers open while they sign in. */
import type { FastifyReply } from 'fastify'

const characters: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;'
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, character => characters[character] ?? '')
}

/** The standard headers forbid scripts, styles and frames. */
function sendPage(reply: FastifyReply, head: string, body: string): void {
  void reply
    .headers({ 'content-type': 'text/html; charset=utf-8', 'referrer-policy': 'no-referrer' })
    .send(
      '<!doctype html><html><head><meta charset="utf-8">' +
        '<meta name="viewport" content="width=device-width">' +
        `${head}</head><body>${body}</body></html>\n`
    )
}

/**
 * A page that goes on to `target` by itself. Unlike one after a redirect from another site, that
 * request has the strict cookies of this site.
 */
export function sendHop(reply: FastifyReply, target: string): void {
  const address = escapeHtml(target)
  const head = `<title>…</title><meta http-equiv="refresh" content="0;url=${address}">`
  sendPage(reply, head, `<p><a href="${address}">→</a></p>`)
}

/** A page that tells something, and goes nowhere by itself. @param target of its link */
export function sendNotice(reply: FastifyReply, text: string, target: string): void {
  const [message, address] = [escapeHtml(text), escapeHtml(target)]
  sendPage(reply, `<title>${message}</title>`, `<p>${message}</p><p><a href="${address}">→</a></p>`)
}
