/** Plain pages of the gateway's own, at addresses that browsers open while they sign in. */
import { hash } from 'node:crypto'
import type { FastifyReply } from 'fastify'
import { Html, html } from './html.ts'

/** The standard headers forbid scripts, styles and frames. */
function sendPage(reply: FastifyReply, head: Html, body: Html): void {
  const page = html`<!doctype html>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width" />
    ${head}${body}`
  void reply
    .headers({ 'content-type': 'text/html; charset=utf-8', 'referrer-policy': 'no-referrer' })
    .send(page.text)
}

/** A page that goes on by itself: unlike after a redirect, that request has the strict cookies. */
export function sendHop(reply: FastifyReply, target: string): void {
  const head = html`<title>…</title><meta http-equiv="refresh" content="0;url=${target}" />`
  sendPage(reply, head, html`<p><a href="${target}">→</a></p>`)
}

export function sendNotice(reply: FastifyReply, text: string, target: string): void {
  const body = html`<p>${text}</p>
    <p><a href="${target}">→</a></p>`
  sendPage(reply, html`<title>${text}</title>`, body)
}

const submit = 'document.forms[0].submit()'
/** As one text: the digest is of what stands between the tags. */
const script = new Html(`<script>${submit}</script>`)
const digest = hash('sha256', submit, 'base64')
const policy = `default-src 'none'; script-src 'sha256-${digest}'; frame-ancestors 'none'`

/** A page that posts a form by itself, so that nothing in it stands in an address. */
export function sendForm(
  reply: FastifyReply,
  action: string,
  fields: Readonly<Record<string, string>>
): void {
  const inputs = Object.entries(fields).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`
  )
  const form = html`<form method="post" action="${action}">${inputs}<button>→</button></form>`
  reply.header('content-security-policy', policy)
  sendPage(reply, html`<title>…</title>`, html`${form}${script}`)
}
