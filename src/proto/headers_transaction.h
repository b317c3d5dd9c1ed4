// Transactions: END_TRANSACTION and the broker's question to a producer.
#pragma once

#include "proto/describe.h"

namespace rmq::proto {

struct EndTransactionRequestHeader {
  std::optional<std::string_view> topic;
  std::string_view producer_group;
  int64_t tran_state_table_offset = 0;
  int64_t commit_log_offset = 0;
  int32_t commit_or_rollback = 0;
  bool from_transaction_check = false;
  std::string_view msg_id;
  std::optional<std::string_view> transaction_id;
  static constexpr auto fields =
      describe(field("topic", &EndTransactionRequestHeader::topic, Resource::topic),
               field("producerGroup", &EndTransactionRequestHeader::producer_group),
               field("tranStateTableOffset", &EndTransactionRequestHeader::tran_state_table_offset),
               field("commitLogOffset", &EndTransactionRequestHeader::commit_log_offset),
               field("commitOrRollback", &EndTransactionRequestHeader::commit_or_rollback),
               defaulted("fromTransactionCheck", &EndTransactionRequestHeader::from_transaction_check),
               field("msgId", &EndTransactionRequestHeader::msg_id),
               field("transactionId", &EndTransactionRequestHeader::transaction_id));
};

struct CheckTransactionStateRequestHeader {
  std::optional<std::string_view> topic;
  int64_t tran_state_table_offset = 0;
  int64_t commit_log_offset = 0;
  std::optional<std::string_view> msg_id, transaction_id, offset_msg_id, bname;
  static constexpr auto fields =
      describe(field("topic", &CheckTransactionStateRequestHeader::topic, Resource::topic),
               field("tranStateTableOffset", &CheckTransactionStateRequestHeader::tran_state_table_offset),
               field("commitLogOffset", &CheckTransactionStateRequestHeader::commit_log_offset),
               field("msgId", &CheckTransactionStateRequestHeader::msg_id),
               field("transactionId", &CheckTransactionStateRequestHeader::transaction_id),
               field("offsetMsgId", &CheckTransactionStateRequestHeader::offset_msg_id),
               field("bname", &CheckTransactionStateRequestHeader::bname));
};

struct ResumeCheckHalfMessageRequestHeader {
  std::optional<std::string_view> topic, msg_id;
  static constexpr auto fields =
      describe(field("topic", &ResumeCheckHalfMessageRequestHeader::topic, Resource::topic),
               field("msgId", &ResumeCheckHalfMessageRequestHeader::msg_id));
};

using EndTransaction =
    Command<RequestCode::END_TRANSACTION, EndTransactionRequestHeader, EmptyHeader, Admission::transaction>;
using CheckTransactionState = Command<RequestCode::CHECK_TRANSACTION_STATE,
                                      CheckTransactionStateRequestHeader, EmptyHeader, Admission::push>;
using ResumeCheckHalfMessage = Command<RequestCode::RESUME_CHECK_HALF_MESSAGE,
                                       ResumeCheckHalfMessageRequestHeader, EmptyHeader, Admission::admin>;

using TransactionCommands = CommandList<EndTransaction, CheckTransactionState, ResumeCheckHalfMessage>;

}  // namespace rmq::proto
