/** Plain pages of the gateway's own, at addresses that browsers open while they sign in. */
import { hash } from 'node:crypto'
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

const submit = 'document.forms[0].submit()'
const digest = hash('sha256', submit, 'base64')
const policy = `default-src 'none'; script-src 'sha256-${digest}'; frame-ancestors 'none'`

/** A page that posts a form by itself, so that nothing in it stands in an address. */
export function sendForm(
  reply: FastifyReply,
  action: string,
  fields: Readonly<Record<string, string>>
): void {
  const inputs = Object.entries(fields).map(
    ([name, value]) => `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`
  )
  sendPage(
    reply.header('content-security-policy', policy),
    '<title>…</title>',
    `<form method="post" action="${escapeHtml(action)}">${inputs.join('')}<button>→</button></form>` +
      `<script>${submit}</script>`
  )
}
