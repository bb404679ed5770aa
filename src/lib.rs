//! work-permit
