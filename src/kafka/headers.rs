//! Reads and writes the headers of a message as bytes. Called by `convert` only.
//! The one file with `unsafe`: rdkafka's own reader panics on a key that is not UTF-8, and one
//! such message would stop a level. Nothing here keeps a pointer past its call.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::ptr;

use rdkafka::bindings as sys;
use rdkafka::message::{BorrowedHeaders, BorrowedMessage, OwnedHeaders};

use crate::core::envelope::OutHeader;
use crate::core::record::Header;

/// All headers of a message, in order. A NUL in a key ends it: librdkafka shows keys as C strings.
pub(super) fn read(message: &BorrowedMessage<'_>) -> Vec<Header> {
    let mut list = ptr::null_mut();
    // SAFETY: the message is alive, and librdkafka only lends the list, which lives as long.
    let found = unsafe { sys::rd_kafka_message_headers(message.ptr(), &mut list) };
    if found != sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR || list.is_null() {
        return Vec::new();
    }
    // SAFETY: `list` was just lent to us by the message.
    let count = unsafe { sys::rd_kafka_header_cnt(list) };
    (0..count)
        .filter_map(|index| read_one(list, index))
        .collect()
}

fn read_one(list: *const sys::rd_kafka_headers_t, index: usize) -> Option<Header> {
    let (mut name, mut value, mut size) = (ptr::null(), ptr::null(), 0);
    // SAFETY: `list` is alive; the three places are written only on success.
    let found =
        unsafe { sys::rd_kafka_header_get_all(list, index, &mut name, &mut value, &mut size) };
    if found != sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR {
        return None;
    }
    // SAFETY: on success `name` is a C string and `value` is null or `size` bytes, both owned by the list.
    unsafe {
        let key = CStr::from_ptr(name).to_bytes().to_vec();
        let value = (!value.is_null())
            .then(|| std::slice::from_raw_parts(value.cast::<u8>(), size).to_vec());
        Some(Header { key, value })
    }
}

/// A list of headers for a message to be produced.
pub(super) fn write(headers: &[OutHeader<'_>]) -> OwnedHeaders {
    let list = OwnedHeaders::new_with_capacity(headers.len());
    // rdkafka hands out the list only as this zero-sized view whose address is the list's.
    let native = ptr::from_ref::<BorrowedHeaders>(list.as_borrowed())
        .cast_mut()
        .cast();
    for (key, value) in headers {
        let (bytes, size) = match value {
            Some(value) => (value.as_ptr().cast(), value.len() as isize),
            None => (ptr::null(), 0),
        };
        // SAFETY: `native` is the list that we own; key and value are copied before the call returns.
        unsafe {
            sys::rd_kafka_header_add(native, key.as_ptr().cast(), key.len() as isize, bytes, size)
        };
    }
    list
}
