/** Questions at the terminal; passwords from a prompt without echo, stdin or a variable. */
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { adopt } from '../observability/emitters.ts'
import { CommandError, type Io, type Option } from './command.ts'

/** The option that names the environment variable with a password. */
export const passwordEnvOption: Option = {
  type: 'string',
  value: 'VARIABLE',
  description: 'the environment variable with the password'
}

/** A console sends no longer one. */
const maxLength = 1024
const advisedLength = 8

/**
 * A password that is to be stored: typed twice at a terminal, or from standard input.
 * @param variable the environment variable that has it instead
 * @throws CommandError for none, one that is too long, or two that differ
 */
export async function readNewPassword(io: Io, variable?: unknown): Promise<string> {
  const isTyped = variable === undefined && io.stdin.isTTY
  const password = await readPassword('Password: ', io, variable)
  if (isTyped && (await askHidden('Again: ', io)) !== password) {
    throw new CommandError('The passwords do not match.')
  }
  if (password.length < advisedLength) {
    io.stderr.write('Note: fewer than 8 characters; 15 and more are advised (NIST SP 800-63B-4).\n')
  }
  return password
}

/** A password. @throws CommandError for none, or one that is too long */
export async function readPassword(question: string, io: Io, variable?: unknown): Promise<string> {
  const password = await passwordFrom(question, io, variable)
  if (password === undefined || password === '' || password.length > maxLength) {
    throw new CommandError(`A password has 1 to ${maxLength} characters.`)
  }
  return password
}

async function passwordFrom(
  question: string,
  io: Io,
  variable: unknown
): Promise<string | undefined> {
  if (typeof variable === 'string') {
    const value = io.env[variable]
    if (value !== undefined) return value
    throw new CommandError(`The environment variable ${variable} is not set.`)
  }
  if (io.stdin.isTTY === true) return await askHidden(question, io)
  return (await text(io.stdin)).replace(/\r?\n$/, '')
}

/** Asks at the terminal. @returns undefined when the prompt was closed */
export async function askLine(
  question: string,
  { stdin, stderr }: Io
): Promise<string | undefined> {
  const prompt = adopt(createInterface({ input: stdin, output: stderr }))
  return await new Promise(resolve => {
    prompt.once('close', () => resolve(undefined))
    prompt.question(question, line => {
      resolve(line.trim())
      prompt.close()
    })
  })
}

/** Asks at the terminal. Only a yes is a yes. */
export async function askYes(question: string, io: Io): Promise<boolean> {
  const line = await askLine(`${question} [y/N] `, io)
  return line !== undefined && /^y(es)?$/i.test(line)
}

/** Asks without echo. @returns undefined when the prompt was closed */
async function askHidden(question: string, { stdin, stderr }: Io): Promise<string | undefined> {
  const silent = adopt(new Writable({ write: (_chunk, _encoding, done) => done() }))
  const prompt = adopt(createInterface({ input: stdin, output: silent, terminal: true }))
  // Written last: until readline takes over, the terminal itself would echo.
  stderr.write(question)
  return await new Promise(resolve => {
    prompt.once('line', line => {
      resolve(line)
      prompt.close()
    })
    prompt.once('close', () => {
      stderr.write('\n')
      resolve(undefined)
    })
  })
}
