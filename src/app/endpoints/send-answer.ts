/** Sends bodies of answers that config writes. */
import { jsonType } from '../../shaping/success.ts'
import type { FastifyReply } from 'fastify'
import { writeJson } from '../../json/body.ts'
import type { Answer } from '../../shaping/answer.ts'

/** Any value is JSON here: Fastify would send a text as text/plain, and null as nothing. */
export function sendAnswer(reply: FastifyReply, { status }: Answer, body: unknown): FastifyReply {
  return sendJsonText(reply, status, writeJson(body))
}

export function sendJsonText(reply: FastifyReply, status: number, text: string): FastifyReply {
  return reply.code(status).header('content-type', jsonType).send(text)
}
