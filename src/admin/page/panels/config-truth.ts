/** Expectations of the config, and contracts of back-ends with their drift. */
import { type ComponentChildren, h } from 'preact'
import { useJson } from '../api.ts'
import type { Contract, ContractsAnswer, Expectation, ExpectationsAnswer } from '../api-types.ts'
import { formatNumber } from '../format.ts'
import { t } from '../words.ts'
import { Card } from '../ui/layout.ts'
import { Pill } from '../ui/pill.ts'
import { Shown } from '../ui/states.ts'
import { type Column, Table } from '../ui/table.ts'

const everyMs = 15_000

export function ConfigTruth(): ComponentChildren {
  return h('div', { class: 'columns' }, h(ExpectationsCard, null), h(ContractsCard, null))
}

function ExpectationsCard(): ComponentChildren {
  const asked = useJson<ExpectationsAnswer>('config/expectations', everyMs)
  const columns: ReadonlyArray<Column<Expectation>> = [
    {
      key: 'what',
      head: t('config.expectation'),
      cell: ({ text }) => h('span', { title: text }, text)
    },
    {
      key: 'state',
      head: t('now.state'),
      width: '8rem',
      cell: ({ isMet, message }) =>
        h(Pill, {
          tone: isMet ? 'ok' : 'bad',
          text: t(isMet ? 'config.met' : 'config.notMet'),
          title: message
        })
    }
  ]
  return h(
    Card,
    { title: t('config.expectations'), count: asked.data?.expectations.length },
    h(Shown<ExpectationsAnswer>, {
      asked,
      show: ({ expectations }) =>
        h(Table<Expectation>, {
          label: t('config.expectations'),
          columns,
          rows: expectations,
          keyOf: ({ text }) => text,
          empty: t('config.noExpectations')
        })
    })
  )
}

function ContractsCard(): ComponentChildren {
  const asked = useJson<ContractsAnswer>('config/contracts', everyMs)
  const columns: ReadonlyArray<Column<Contract>> = [
    {
      key: 'route',
      head: t('now.route'),
      sortBy: ({ route }) => route,
      cell: ({ route }) => route
    },
    {
      key: 'drift',
      head: t('config.drift'),
      cell: ({ drift }) =>
        drift.length === 0
          ? h(Pill, { tone: 'ok', text: t('config.noDrift') })
          : h('span', { class: 'warn', title: drift.join('\n') }, drift.join('; '))
    },
    {
      key: 'checked',
      head: t('config.checked'),
      width: '6rem',
      isNumber: true,
      cell: ({ checked }) => formatNumber(checked)
    }
  ]
  return h(
    Card,
    { title: t('config.contracts'), count: asked.data?.contracts.length },
    h(Shown<ContractsAnswer>, {
      asked,
      show: ({ contracts }) =>
        h(Table<Contract>, {
          label: t('config.contracts'),
          columns,
          rows: contracts,
          keyOf: ({ route }) => route,
          empty: t('config.noContracts')
        })
    })
  )
}
