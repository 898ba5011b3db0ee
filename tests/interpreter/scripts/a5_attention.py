"""A serial attention for A5: two scopes, three events, P handed over in NZ. It checks itself against torch."""

import torch
import triton
import triton.extension.buffer.language as bl
import triton.language as tl
import triton.language.extra.cann.extension as al


@triton.jit
def _qk_matmul(q, K_block_ptr, qk_ub, HEAD_DIM: tl.constexpr, BLOCK_N: tl.constexpr):
    k = tl.load(K_block_ptr)
    qk = tl.dot(q, tl.trans(k))
    al.fixpipe(qk, qk_ub, al.FixpipeDMAMode.NZ2ND, al.FixpipeDualDstMode.ROW_SPLIT)


@triton.jit
def _pv_matmul(p_l1, pv_ub, V_block_ptr, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    v = tl.load(V_block_ptr)
    p = bl.to_tensor(p_l1, target_shape=[BLOCK_M, BLOCK_N])
    pv = tl.dot(p, v)
    al.fixpipe(pv, pv_ub, al.FixpipeDMAMode.NZ2ND, al.FixpipeDualDstMode.ROW_SPLIT)


@triton.jit
def _flash_update(pv_ub, alpha, acc, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr):
    pv = bl.to_tensor(pv_ub)
    return acc * alpha[:, None] + pv


@triton.jit
def _attn_fwd(
    Q,
    K,
    V,
    Out,
    sm_scale,
    stride_z,
    stride_h,
    stride_s,
    stride_d,
    H,
    SEQ,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    start_m = tl.program_id(0)
    off_z = tl.program_id(1) // H
    off_h = tl.program_id(1) % H
    base = off_z * stride_z + off_h * stride_h
    sub_vec_id = al.sub_vec_id()
    HALF: tl.constexpr = BLOCK_M // 2
    Q_block_ptr = tl.make_block_ptr(
        Q + base, (SEQ, HEAD_DIM), (stride_s, stride_d), (start_m * BLOCK_M, 0), (BLOCK_M, HEAD_DIM), (1, 0)
    )
    K_block_ptr = tl.make_block_ptr(
        K + base, (SEQ, HEAD_DIM), (stride_s, stride_d), (0, 0), (BLOCK_N, HEAD_DIM), (1, 0)
    )
    V_block_ptr = tl.make_block_ptr(
        V + base, (SEQ, HEAD_DIM), (stride_s, stride_d), (0, 0), (BLOCK_N, HEAD_DIM), (1, 0)
    )
    O_block_ptr_sub = tl.make_block_ptr(
        Out + base,
        (SEQ, HEAD_DIM),
        (stride_s, stride_d),
        ((start_m * BLOCK_M + sub_vec_id * HALF).to(tl.int32), 0),
        (HALF, HEAD_DIM),
        (1, 0),
    )
    qk_ub = bl.alloc(tl.float32, (BLOCK_M // 2, BLOCK_N), al.ascend_address_space.UB)
    pv_ub = bl.alloc(tl.float32, (BLOCK_M // 2, HEAD_DIM), al.ascend_address_space.UB)
    p_l1 = bl.alloc(tl.float16, (BLOCK_N // 16, BLOCK_M // 16, 16, 16), al.ascend_address_space.L1)
    N_Loop = SEQ // BLOCK_N
    with al.scope(core_mode="cube"):
        q = tl.load(Q_block_ptr)
        for _start_n in range(0, N_Loop, 1):
            _qk_matmul(q, K_block_ptr, qk_ub, HEAD_DIM, BLOCK_N)
            al.sync_block_set("cube", "vector", 0, al.PIPE.PIPE_FIX, al.PIPE.PIPE_V)
            al.sync_block_wait("vector", "cube", 1, al.PIPE.PIPE_MTE3, al.PIPE.PIPE_MTE1)
            _pv_matmul(p_l1, pv_ub, V_block_ptr, HEAD_DIM, BLOCK_M, BLOCK_N)
            al.sync_block_set("cube", "vector", 2, al.PIPE.PIPE_FIX, al.PIPE.PIPE_V)
            K_block_ptr = tl.advance(K_block_ptr, (BLOCK_N, 0))
            V_block_ptr = tl.advance(V_block_ptr, (BLOCK_N, 0))
    with al.scope(core_mode="vector"):
        m_i = tl.full([HALF], -float("inf"), tl.float32)
        l_i = tl.zeros([HALF], tl.float32)
        acc = tl.zeros([HALF, HEAD_DIM], tl.float32)
        for _start_n in range(0, N_Loop, 1):
            al.sync_block_wait("cube", "vector", 0, al.PIPE.PIPE_FIX, al.PIPE.PIPE_V)
            qk = bl.to_tensor(qk_ub) * sm_scale
            m_new = tl.maximum(m_i, tl.max(qk, 1, propagate_nan=True))
            p = tl.exp(qk - m_new[:, None])
            alpha = tl.exp(m_i - m_new)
            l_i = l_i * alpha + tl.sum(p, 1)
            m_i = m_new
            p_nz_tmp = p.to(tl.float16).reshape(BLOCK_M // 2, BLOCK_N // 16, 16).permute(1, 0, 2)
            p_l1_sub = bl.subview(
                p_l1,
                [0, sub_vec_id * ((BLOCK_M // 2) // 16), 0, 0],
                [BLOCK_N // 16, (BLOCK_M // 2) // 16, 16, 16],
                [1, 1, 1, 1],
            )
            p_nz = p_nz_tmp.reshape(BLOCK_N // 16, BLOCK_M // 32, 16, 16)
            al.copy(bl.to_buffer(p_nz, al.ascend_address_space.UB), p_l1_sub)
            al.sync_block_set("vector", "cube", 1, al.PIPE.PIPE_MTE3, al.PIPE.PIPE_MTE1)
            al.sync_block_wait("cube", "vector", 2, al.PIPE.PIPE_FIX, al.PIPE.PIPE_V)
            acc = _flash_update(pv_ub, alpha, acc, HEAD_DIM, BLOCK_M)
        acc = acc / l_i[:, None]
        tl.store(O_block_ptr_sub, acc.to(Out.type.element_ty))


torch.manual_seed(0)
Z, H, S, D = 1, 2, 128, 32
q, k, v = (torch.randn(Z, H, S, D, dtype=torch.float16, device="npu") for _ in range(3))
o = torch.empty_like(q)
BM, BN = 64, 32
_attn_fwd[(S // BM, Z * H)](
    q,
    k,
    v,
    o,
    D**-0.5,
    *q.stride(),
    H,
    S,
    HEAD_DIM=D,
    BLOCK_M=BM,
    BLOCK_N=BN,
    debug=True,
    disable_auto_inject_block_sync=True,
    vf_merge_level=1,
)
ref = torch.softmax((q.float() @ k.float().transpose(-1, -2)) * D**-0.5, -1) @ v.float()
torch.testing.assert_close(o.float().cpu(), ref.cpu(), rtol=2e-2, atol=2e-3)
