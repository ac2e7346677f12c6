/** `hash-password`: makes the argon2id hash for users.yaml, from a prompt or standard input. */
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { hashPassword } from '../login/argon2.ts'
import { adopt } from '../observability/emitters.ts'
import type { Command } from './command.ts'

export const hashPasswordCommand: Command = {
  summary: 'read a password (prompt or standard input), print its argon2id hash',
  details: `
The hash is the password of a user in a users file. A password on the command line is refused: it
would stay in the shell's history.

Examples:
  console-gateway hash-password
  pass show console/alice | console-gateway hash-password`,
  // The usage error would print the words, and one of them may be a password.
  checksWords: true,
  run: async ({ rest }) => {
    if (rest.length > 0) {
      process.stderr.write(
        'A password on the command line is visible to everyone on this machine and kept in the ' +
          'shell’s history. Type it at the prompt, or pass it on standard input.\n'
      )
      return 2
    }
    const password = process.stdin.isTTY
      ? await ask('Password: ')
      : (await text(process.stdin)).replace(/\r?\n$/, '')
    if (password === undefined || password === '' || password.length > 1024) {
      process.stderr.write('A password has 1 to 1024 characters.\n')
      return 1
    }
    if (process.stdin.isTTY && (await ask('Again: ')) !== password) {
      process.stderr.write('The passwords do not match.\n')
      return 1
    }
    if (password.length < 8) {
      process.stderr.write(
        'Note: fewer than 8 characters; 15 and more are advised (NIST SP 800-63B-4).\n'
      )
    }
    process.stdout.write(`${await hashPassword(password)}\n`)
    return 0
  }
}

/** Asks without echo. @returns undefined when the prompt was closed */
async function ask(question: string): Promise<string | undefined> {
  const silent = adopt(new Writable({ write: (_chunk, _encoding, done) => done() }))
  const prompt = adopt(createInterface({ input: process.stdin, output: silent, terminal: true }))
  // Written last: until readline takes over, the terminal itself would echo.
  process.stderr.write(question)
  return await new Promise(resolve => {
    prompt.once('line', line => {
      resolve(line)
      prompt.close()
    })
    prompt.once('close', () => {
      process.stderr.write('\n')
      resolve(undefined)
    })
  })
}
