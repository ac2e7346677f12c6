/** Texts of the panel Ledger. */

export const ledgerTexts = {
  'ledger.title': ['Ledger', '审计'],
  'ledger.newest': ['Newest lines', '最新记录'],
  'ledger.none': [
    'There is no ledger: the config has no section audit.',
    '没有审计日志：配置中没有 audit 部分。'
  ],
  'ledger.failing': ['Lines cannot be written: {reason}', '无法写入记录：{reason}'],
  'ledger.lost': [
    '{n:line was|lines were} lost, since they could not be written.',
    '有 {n} 条记录因无法写入而丢失。'
  ],
  'ledger.noMatch': ['No line fits.', '没有符合条件的记录。'],
  'ledger.notWhole': [
    'Older lines were not searched. Search them with console-gateway audit search.',
    '未搜索更早的记录，请使用 console-gateway audit search。'
  ],
  'ledger.anyKind': ['Everything', '全部'],
  'ledger.kind': ['Kind', '类型'],
  'ledger.who': ['Who', '人员'],
  'ledger.what': ['What', '内容'],
  'ledger.signed': ['Signature', '签名'],
  'ledger.valid': ['valid', '有效'],
  'ledger.invalid': ['invalid', '无效'],
  'auditKind.act': ['operator’s act', '运维操作'],
  'auditKind.request': ['request', '请求'],
  'auditKind.sign-in': ['sign-in', '登录'],
  'auditKind.sign-in.refused': ['sign-in refused', '登录被拒'],
  'auditKind.sign-out': ['sign-out', '退出'],
  'auditKind.sessions.revoked': ['sessions closed', '会话关闭'],
  'auditKind.config.reload': ['reload', '重新加载'],
  'auditKind.config.rollback': ['rollback', '回滚'],
  'auditKind.opened': ['ledger opened', '日志开启'],
  'auditKind.closed': ['ledger closed', '日志关闭'],
  'auditKind.stopped': ['gateway stopped', '网关停止'],
  'auditKind.recovered': ['recovered', '已恢复'],
  'auditKind.pruned': ['old lines removed', '旧记录已清理'],
  'auditKind.lost': ['lines lost', '记录丢失'],
  'auditKind.head': ['signed state', '签名状态'],
  'outcome.begun': ['begun', '开始'],
  'outcome.done': ['done', '完成'],
  'outcome.failed': ['failed', '失败'],
  'outcome.refused': ['refused', '被拒绝']
} as const
